import trio

from trio_asyncio_io import ordered_wait


async def divisors(number):
    return [each for each in range(2, number) if number % each == 0]


async def main():
    async with ordered_wait(
        [12, 13, 14], divisors, timeout=5.0, flatten=True
    ) as results:
        print([result async for result in results])


if __name__ == "__main__":
    trio.run(main)
