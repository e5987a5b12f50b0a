import trio
from trio.testing import MockClock

from trio_asyncio_io import ordered_wait

SECONDS = {
    "Oslo": 0.5,
    "Rome": 0.4,
    "Lima": 2.0,
    "Cairo": 0.6,
    "Quito": 0.7,
    "Perth": 0.9,
}


async def weather(city):
    await trio.sleep(SECONDS[city])
    return f"{city}: fine"


async def main():
    async with ordered_wait(SECONDS, weather, capacity=3, timeout=5.0) as results:
        async for result in results:
            print(f"{result:12} after {trio.current_time():.1f} s")


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
