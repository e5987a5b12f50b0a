import logging
import sys
import time

import trio

from trio_asyncio_io import ordered_wait
from trio_asyncio_io.blocking import BlockedLoop

logging.basicConfig(format="%(message)s", stream=sys.stdout)


async def lookup(number):
    time.sleep(0.5)  # should be `await trio.sleep(0.5)`
    return number


async def main():
    async with ordered_wait(range(3), lookup, timeout=5.0) as results:
        print([result async for result in results])


if __name__ == "__main__":
    trio.run(main, instruments=[BlockedLoop()])
