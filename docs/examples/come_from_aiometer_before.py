import aiometer
import trio
from trio.testing import MockClock

SECONDS = {"Oslo": 0.5, "Rome": 0.4, "Lima": 2.0, "Cairo": 0.7}


async def weather(city):
    await trio.sleep(SECONDS[city])
    return f"{city}: fine"


async def main():
    cities = list(SECONDS)
    async with aiometer.amap(weather, cities, max_at_once=3) as results:
        async for result in results:
            print(result)


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
