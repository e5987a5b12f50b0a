import trio
from rich.console import Console
from trio.testing import MockClock

from trio_asyncio_io import unordered_wait
from trio_asyncio_io.progress import progress


async def echo_after(seconds):
    await trio.sleep(seconds)
    return seconds


async def main():
    async with unordered_wait(
        [9.0, 20.0, 70.0], echo_after, capacity=2, timeout=60.0, on_error="skip"
    ) as results:
        with progress(results, total=3, console=Console()) as rows:
            async for _ in rows:
                pass


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
