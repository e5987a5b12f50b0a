import heapq

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
    waiting, complete = [], float("-inf")
    async for result in results:
        if not isinstance(result, Watermark):
            if result.timestamp < complete:
                late.append(result.value)
            else:
                heapq.heappush(waiting, (result.timestamp, result.value))
            continue
        complete = result.timestamp
        while waiting and waiting[0][0] <= complete:
            yield heapq.heappop(waiting)
    while waiting:
        yield heapq.heappop(waiting)


async def main():
    without, late = [], []
    source = assign_watermarks(
        with_time(EVENTS, without), timestamp=lambda e: e["at"], max_out_of_orderness=10
    )
    async with ordered_wait(source, enrich, timeout=5.0) as results:
        print([each async for each in by_event_time(results, late)])
    print("late:", late, "without a time:", [event["id"] for event in without])


if __name__ == "__main__":
    trio.run(main)
