"""Start `python -m udfs.demo.service` first, or name your own service:

python measure_it.py "https://service.example/items/{}"
"""

import sys

import trio

from trio_asyncio_io import unordered_wait
from udfs.http import client

SLOW = "http://127.0.0.1:8000/slow/{}"
if sys.argv[1:]:
    URLS = [sys.argv[1].format(number) for number in range(200)]
else:
    URLS = [SLOW.format(0.02 if number % 50 else 0.5) for number in range(200)]


async def batch_by_batch(call):  # as `asyncio.gather` for each batch
    for first in range(0, len(URLS), 50):
        async with trio.open_nursery() as nursery:
            for url in URLS[first : first + 50]:
                nursery.start_soon(call, url)


async def across_batches(call):
    async with unordered_wait(URLS, call, capacity=50, timeout=30.0) as results:
        async for _ in results:
            pass


async def main():
    async with client() as http:
        for way in (batch_by_batch, across_batches):
            start = trio.current_time()
            await way(http.get)
            print(f"{way.__name__}: {trio.current_time() - start:.2f} s")


if __name__ == "__main__":
    trio.run(main)
