import trio
from trio.testing import MockClock

from trio_asyncio_io import ordered_wait, unordered_wait

SECONDS = {"Oslo": 0.5, "Rome": 0.4, "Lima": 2.0, "Cairo": 0.7}


async def weather(city):
    await trio.sleep(SECONDS[city])
    return f"{city}: fine"


async def show(map_async):
    async with map_async(SECONDS, weather, capacity=3, timeout=5.0) as results:
        print([result async for result in results])


async def main():
    await show(ordered_wait)  # mapAsync
    await show(unordered_wait)  # mapAsyncUnordered


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
