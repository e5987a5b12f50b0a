import trio
from trio.testing import MockClock

from trio_asyncio_io import Watermark, ordered_wait, unordered_wait

ELEMENTS = [Watermark("w1"), "r1", "r2", "r3", Watermark("w2"), "r4"]
SECONDS = {"r1": 1.0, "r2": 0.2, "r3": 0.6, "r4": 0.4}


async def call(record):
    await trio.sleep(SECONDS[record])
    return record


async def show(name, wait, elements, **options):
    start, seen = trio.current_time(), []
    async with wait(elements, call, timeout=5.0, **options) as results:
        async for each in results:
            text = each.timestamp if isinstance(each, Watermark) else each
            seen.append(f"{text} at {trio.current_time() - start:.1f}")
    print(f"{name:<16}", ", ".join(seen))


async def main():
    records = [each for each in ELEMENTS if not isinstance(each, Watermark)]
    await show("processing time", unordered_wait, records)
    await show("event time", unordered_wait, ELEMENTS)
    await show("ordered", ordered_wait, ELEMENTS)


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
