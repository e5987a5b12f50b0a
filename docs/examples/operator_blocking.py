import time

import trio

from trio_asyncio_io import ordered_wait
from trio_asyncio_io.adapters import in_thread


def blocking(number):
    time.sleep(0.01)
    return -number


async def main():
    async with ordered_wait(range(5), in_thread(blocking), timeout=5.0) as results:
        print([result async for result in results])


if __name__ == "__main__":
    trio.run(main)
