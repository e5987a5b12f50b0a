import trio
from trio.testing import MockClock

from trio_asyncio_io import ordered_wait


async def lookup(number):
    await trio.sleep(5.0 if number % 100 == 0 else 0.1)  # one in a hundred is slow
    return number


async def explain(buffer):
    async with ordered_wait(
        range(10_000), lookup, capacity=20, buffer=buffer, timeout=10.0
    ) as results:
        async for _ in results:
            pass
    print(results.explain(), end="\n\n")


async def main():
    await explain(buffer=100)
    await explain(buffer=1_000)


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
