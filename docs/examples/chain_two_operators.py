import trio
from trio.testing import MockClock

from trio_asyncio_io import Watermark, ordered_wait, unordered_wait


async def weather(flight):  # call the first service here
    await trio.sleep(1.0)
    return {"flight": flight, "temp": 70.0 if flight == "UA2" else 39.0}


async def only_cold(rows):  # a step between the two
    async for row in rows:
        if isinstance(row, Watermark) or row["temp"] < 50.0:
            yield row


async def plane(row):  # call the second service here, with the first result
    await trio.sleep(1.0)
    return {**row, "plane": f"plane of {row['flight']}"}


async def main():
    flights = ["UA1", "UA2", Watermark(1), "UA3"]
    async with (
        unordered_wait(flights, weather, capacity=100, timeout=5.0) as with_weather,
        ordered_wait(
            only_cold(with_weather), plane, capacity=20, timeout=5.0
        ) as results,
    ):
        count = 0
        async for result in results:
            if isinstance(result, Watermark):
                print(count, "before", result)
            else:
                count += 1
        print(count, "in all, after", trio.current_time(), "s")


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
