import pickle

import trio
from trio.testing import MockClock

from trio_asyncio_io import ordered_wait


async def double(number):
    await trio.sleep(0.1)
    return 2 * number


async def first_run(numbers):
    received = []
    async with ordered_wait(
        numbers, double, capacity=4, buffer=8, timeout=5.0
    ) as results:
        async for result in results:
            received.append(result)
            if len(received) == 6:
                break
    return received, pickle.dumps(results.snapshot())


async def second_run(numbers, saved):
    snapshot = pickle.loads(saved)
    async with ordered_wait(
        numbers, double, capacity=2, buffer=4, timeout=5.0, restore=snapshot
    ) as results:
        return [result async for result in results]


async def main():
    # Accepted elements are no longer in this iterator, but in the snapshot
    numbers = iter(range(20))
    received, saved = await first_run(numbers)
    print("stopped with", received)
    print("saved, from element", pickle.loads(saved).elements[0].element)
    received += await second_run(numbers, saved)
    print("all there:", received == [2 * number for number in range(20)])


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
