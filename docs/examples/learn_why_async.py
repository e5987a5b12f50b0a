import trio
from trio.testing import MockClock

from trio_asyncio_io import unordered_wait

SECONDS = [0.3, 0.2, 0.9, 0.2, 0.3, 0.4, 0.2, 0.3]  # how long the service takes


async def call(number):
    await trio.sleep(SECONDS[number])
    return number


async def one_after_another(function):
    return [await function(number) for number in range(8)]


async def in_batches(function, size=4):
    for first in range(0, 8, size):
        async with trio.open_nursery() as nursery:  # ends with its slowest call
            for number in range(first, first + size):
                nursery.start_soon(function, number)


async def always_four(function):
    numbers = range(8)
    async with unordered_wait(numbers, function, capacity=4, timeout=5.0) as results:
        return [number async for number in results]


async def main():
    for way in (one_after_another, in_batches, always_four):
        start = trio.current_time()
        await way(call)
        print(f"{way.__name__:<18} {trio.current_time() - start:.1f} s")


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
