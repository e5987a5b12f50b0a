import trio
from trio.testing import MockClock

from trio_asyncio_io import unordered_wait
from trio_asyncio_io.policies import hedged
from trio_asyncio_io.progress import summary

calls = []


async def lookup(number):
    calls.append(number)
    await trio.sleep(1.0 if len(calls) % 100 == 0 else 0.02 + len(calls) % 7 / 1000)
    return number


async def run(function):
    began = trio.current_time()
    async with unordered_wait(
        range(5000), function, timeout=5.0, capacity=20
    ) as results:
        async for _ in results:
            pass
    return summary(results.statistics(), trio.current_time() - began)


async def main():
    print(await run(lookup))
    print(await run(hedged(lookup, after=0.05)))


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
