import asyncio

import trio

from trio_asyncio_io import ordered_wait
from trio_asyncio_io.adapters import from_asyncio


async def half(number):
    async with asyncio.timeout(1.0):
        await asyncio.sleep(0.01)
    return number / 2


async def main():
    async with ordered_wait(range(5), from_asyncio(half), timeout=5.0) as results:
        print([result async for result in results])


if __name__ == "__main__":
    trio.run(main)
