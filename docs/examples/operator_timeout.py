import trio
from trio.testing import MockClock

from trio_asyncio_io import ordered_wait


async def echo_after(seconds):
    await trio.sleep(seconds)
    return seconds


async def none(seconds):
    return None


async def main():
    async with ordered_wait(
        [0.1, 60.0, 0.2], echo_after, timeout=1.0, on_timeout=none
    ) as results:
        print([result async for result in results])


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
