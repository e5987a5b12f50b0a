from datetime import UTC, datetime, timedelta

import trio
from trio.testing import MockClock

from trio_asyncio_io import (
    ExponentialBackoff,
    Watermark,
    assign_watermarks,
    ordered_wait,
    transient,
)

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ROOMS = {"s1": "hall", "s2": "attic"}


async def readings():  # your source: a socket, a topic, a queue
    for second, sensor in [(0, "s1"), (2, "s2"), (1, "s1"), (9, "s2"), (8, "s1")]:
        yield {"sensor": sensor, "at": NOON + timedelta(seconds=second)}


async def look_up(reading):  # call your service here
    await trio.sleep(1.0 if reading["sensor"] == "s1" else 0.1)
    return ROOMS[reading["sensor"]]


async def enrich(reading):
    return {**reading, "room": await look_up(reading)}


async def main():
    source = assign_watermarks(
        readings(),
        timestamp=lambda reading: reading["at"],
        max_out_of_orderness=timedelta(seconds=5),  # how late a reading may be
    )
    retry = ExponentialBackoff(3, initial=0.2, maximum=2.0, retry_on=transient)
    async with ordered_wait(
        source, enrich, capacity=100, timeout=10.0, retry=retry
    ) as results:
        async for result in results:
            if isinstance(result, Watermark):
                print(f"watermark {result.timestamp:%X}: nothing older will follow")
            else:
                print(f"{result.timestamp:%X}", result.value["room"])


if __name__ == "__main__":
    # In your program: trio.run(main)
    trio.run(main, clock=MockClock(autojump_threshold=0))
