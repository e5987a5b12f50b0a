import trio
from trio.testing import MockClock

from trio_asyncio_io import Watermark, keyed_wait, ordered_wait, unordered_wait

ELEMENTS = ["a:3", "b:1", Watermark("|"), "c:5", "b:2", "a:4"]


async def call(record):
    await trio.sleep(int(record[2]) / 10)
    return record


async def show(name, wait, **options):
    start = trio.current_time()
    async with wait(ELEMENTS, call, timeout=5.0, **options) as results:
        seen = []
        async for result in results:
            text = result.timestamp if isinstance(result, Watermark) else result
            seen.append(f"{text} at {trio.current_time() - start:.1f}")
    print(f"{name:<10}", ", ".join(seen))


async def main():
    await show("ordered", ordered_wait)
    await show("unordered", unordered_wait)
    await show("keyed", keyed_wait, key=lambda record: record[0])


if __name__ == "__main__":
    # A virtual clock: sleeping takes no time, and instants are exact
    trio.run(main, clock=MockClock(autojump_threshold=0))
