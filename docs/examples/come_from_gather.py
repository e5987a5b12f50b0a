import trio

from trio_asyncio_io import ordered_wait

CITIES = ["Oslo", "Rome", "Lima", "Cairo", "Quito", "Perth"]


async def weather(city):
    await trio.sleep(len(city) / 100)
    return f"{city}: fine"


async def main():
    async with ordered_wait(CITIES, weather, capacity=3, timeout=5.0) as results:
        async for result in results:
            print(result)


if __name__ == "__main__":
    trio.run(main)
