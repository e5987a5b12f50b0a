import bisect

import trio

from trio_asyncio_io import Watermark, assign_watermarks, ordered_wait

EVENTS = [
    {"id": "a", "at": 10},
    {"id": "b", "at": 30},
    {"id": "c", "at": 25},
    {"id": "d", "at": None},
    {"id": "e", "at": 12},
    {"id": "f", "at": 40},
]


async def enrich(event):  # call your service here
    return event["id"].upper()


def with_time(events, without):
    for event in events:
        if event["at"] is None:
            without.append(event)
        else:
            yield event


async def by_event_time(results, late):
    """Results in the order of their event times; late ones go to a list."""
    waiting, watermark = [], None
    async for result in results:
        if isinstance(result, Watermark):
            watermark = result
            while waiting and waiting[0].timestamp <= watermark.timestamp:
                yield waiting.pop(0)
        elif watermark is not None and result.timestamp < watermark.timestamp:
            late.append(result.value)
        else:
            bisect.insort(waiting, result, key=lambda record: record.timestamp)
    for result in waiting:
        yield result


async def main():
    without, late = [], []
    source = assign_watermarks(
        with_time(EVENTS, without), timestamp=lambda e: e["at"], max_out_of_orderness=10
    )
    async with ordered_wait(source, enrich, timeout=5.0) as results:
        async for result in by_event_time(results, late):
            print(result)
    print("late:", late, "without a time:", [event["id"] for event in without])


if __name__ == "__main__":
    trio.run(main)
