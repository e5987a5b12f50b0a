import math

import trio

from trio_asyncio_io import ordered_wait


async def reciprocal(number):
    return 1 / number


async def infinite(number, exception):
    return math.inf


async def main():
    async with ordered_wait(
        [2, 0, 4], reciprocal, timeout=5.0, on_error=infinite
    ) as results:
        print([result async for result in results])
    try:
        async with ordered_wait([2, 0, 4], reciprocal, timeout=5.0) as results:
            print([result async for result in results])
    except ZeroDivisionError as error:
        print(error.__notes__)


if __name__ == "__main__":
    trio.run(main)
