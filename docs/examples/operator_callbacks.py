import threading

import trio

from trio_asyncio_io import ordered_wait
from trio_asyncio_io.adapters import from_callback


def start(number, result_future):
    threading.Timer(0.01, result_future.complete, [number + 1]).start()


async def main():
    async with ordered_wait(range(5), from_callback(start), timeout=5.0) as results:
        print([result async for result in results])


if __name__ == "__main__":
    trio.run(main)
