from itertools import islice

import trio

from trio_asyncio_io import ordered_wait


async def double(number):
    return 2 * number


async def main():
    numbers = range(20)
    async with ordered_wait(
        numbers, double, capacity=4, buffer=8, timeout=5.0
    ) as results:
        first = [await results.receive() for _ in range(6)]
        saved = results.snapshot()

    # A file would continue at its line, a topic at its offset
    others = islice(numbers, saved.taken, None)
    async with ordered_wait(others, double, timeout=5.0, restore=saved) as results:
        rest = [result async for result in results]
    print(first + rest == [2 * number for number in numbers])


if __name__ == "__main__":
    trio.run(main)
