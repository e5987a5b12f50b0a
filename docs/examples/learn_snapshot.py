import pickle

import trio
from trio.testing import MockClock

from trio_asyncio_io import unordered_wait

SECONDS = {"a": 0.2, "b": 1.4, "c": 0.3, "d": 0.9, "e": 0.4, "f": 0.6}


async def call(name):
    await trio.sleep(SECONDS[name])
    return name.upper()


async def first_run(names, **options):
    received = []
    async with unordered_wait(
        names, call, capacity=3, buffer=4, timeout=5.0, **options
    ) as results:
        async for result in results:
            received.append(result)
            if len(received) == 2:
                await trio.sleep(0.5)  # e completes meanwhile
                saved = pickle.dumps(results.snapshot())  # waits for no call
                break
    return received, saved


async def second_run(names, saved, **options):
    async with unordered_wait(
        names, call, capacity=3, timeout=5.0, restore=pickle.loads(saved), **options
    ) as results:
        return [result async for result in results]


async def main():
    names = "abcdef"
    received, saved = await first_run(names)
    print("received:", received)
    snapshot = pickle.loads(saved)
    for each in snapshot.elements:
        print("in the snapshot:", each.element, each.results)
    print("taken from the source:", snapshot.taken)
    print("received then:", await second_run(names[snapshot.taken :], saved))


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
