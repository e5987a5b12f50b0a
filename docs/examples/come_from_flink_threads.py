import time

import trio

from trio_asyncio_io import ordered_wait
from trio_asyncio_io.adapters import in_thread


def query(city):  # a client that blocks, such as JDBC
    time.sleep(0.05)
    return f"{city}: fine"


async def main():
    cities = ["Oslo", "Rome", "Lima"]
    async with ordered_wait(
        cities, in_thread(query), timeout=5.0, capacity=20
    ) as results:
        print([result async for result in results])


if __name__ == "__main__":
    trio.run(main)
