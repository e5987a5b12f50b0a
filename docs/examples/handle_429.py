"""Needs the service: python -m udfs.demo.service"""

import trio

from trio_asyncio_io import AsyncFunction, ExponentialBackoff, transient, unordered_wait
from trio_asyncio_io.gates import RateLimit
from udfs.http import client


class Lookup(AsyncFunction):
    async def open(self):  # once, before the first call
        self.http = client(base_url="http://127.0.0.1:8000")

    async def invoke(self, key):  # once per attempt
        response = await self.http.get(f"/busy/{key}")  # the first one is a 429
        return response.raise_for_status().json()["key"]

    async def close(self):
        await self.http.aclose()


async def main():
    keys = [f"key{number}" for number in range(20)]
    async with unordered_wait(
        keys,
        Lookup(),
        capacity=20,
        timeout=60.0,
        retry=ExponentialBackoff(5, initial=0.5, maximum=30.0, retry_on=transient),
        gate=RateLimit(50.0, burst=5),  # calls per second, retries included
    ) as results:
        found = [result async for result in results]
    numbers = results.statistics()
    print(len(found), "results")
    print(numbers.retried, "retries,", numbers.failed, "failed")


if __name__ == "__main__":
    trio.run(main)
