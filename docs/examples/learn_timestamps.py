import trio
from trio.testing import MockClock

from trio_asyncio_io import assign_watermarks, unordered_wait

EVENTS = [{"at": 10, "s": 0.3}, {"at": 7, "s": 0.2}, {"at": 21, "s": 0.1}]


async def halves(event):
    await trio.sleep(event["s"])
    return [f"{event['at']}, first half", f"{event['at']}, second half"]


async def main():
    source = assign_watermarks(
        EVENTS, timestamp=lambda event: event["at"], max_out_of_orderness=5
    )
    async with unordered_wait(source, halves, timeout=5.0, flatten=True) as results:
        async for result in results:
            print(result)


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
