import asyncio

CITIES = ["Oslo", "Rome", "Lima", "Cairo", "Quito", "Perth"]


async def weather(city):
    await asyncio.sleep(len(city) / 100)  # in place of a call to a service
    return f"{city}: fine"


async def main():
    slots = asyncio.Semaphore(3)

    async def limited(city):
        async with slots, asyncio.timeout(5.0):
            return await weather(city)

    for result in await asyncio.gather(*map(limited, CITIES)):
        print(result)


if __name__ == "__main__":
    asyncio.run(main())
