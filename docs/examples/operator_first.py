import trio

from trio_asyncio_io import ordered_wait


async def slow_square(number):
    await trio.sleep(0.1)
    return number * number


async def main():
    numbers = range(100)
    async with ordered_wait(numbers, slow_square, capacity=50, timeout=5.0) as results:
        print(sum([square async for square in results]))


if __name__ == "__main__":
    trio.run(main)
