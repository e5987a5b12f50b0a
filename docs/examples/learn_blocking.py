import time

import trio

from trio_asyncio_io import unordered_wait
from trio_asyncio_io.adapters import in_thread


def lookup(number):
    time.sleep(0.05)  # a client without async
    return number


async def blocks_the_loop(number):
    return lookup(number)


async def main():
    for function in (blocks_the_loop, in_thread(lookup)):
        start = time.perf_counter()
        async with unordered_wait(range(10), function, timeout=5.0) as results:
            async for _ in results:
                pass
        seconds = time.perf_counter() - start
        print("one after another" if seconds > 0.45 else "at once")


if __name__ == "__main__":
    trio.run(main)
