import trio
from trio.testing import MockClock

from trio_asyncio_io import Watermark, ordered_wait, unordered_wait


async def weather(flight):  # call the first service here
    await trio.sleep(1.0)
    return {"flight": flight, "temp": 39.0}


async def plane(row):  # call the second service here, with the first result
    await trio.sleep(1.0)
    return {**row, "plane": f"plane of {row['flight']}"}


async def main():
    flights = ["UA1", "UA2", Watermark(1), "UA3"]
    async with (
        unordered_wait(flights, weather, capacity=100, timeout=5.0) as with_weather,
        ordered_wait(with_weather, plane, capacity=20, timeout=5.0) as results,
    ):
        count = 0
        async for result in results:
            if isinstance(result, Watermark):
                print(result, "after", count, "results")
            else:
                count += 1
        print(count, "results in", trio.current_time(), "s")


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
