import trio
from trio.testing import MockClock

from trio_asyncio_io import ordered_wait
from trio_asyncio_io.gates import RateLimit
from trio_asyncio_io.progress import summary


async def lookup(number):
    await trio.sleep(0.3)
    return number


async def main():
    gate = RateLimit(10, burst=5)
    async with ordered_wait(range(35), lookup, timeout=0.5, gate=gate) as results:
        async for _ in results:
            pass
    print(summary(results.statistics(), trio.current_time()))
    print(results.explain())


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
