"""Needs a PostgreSQL: DATABASE_URL=postgresql://... python learn_database.py"""

import os

import asyncpg
import trio

from trio_asyncio_io import unordered_wait
from trio_asyncio_io.adapters import from_asyncio


class AsyncDatabaseRequest:
    async def open(self):
        url = os.environ["DATABASE_URL"]
        self.client = await asyncpg.create_pool(url, min_size=1, max_size=20)

    async def close(self):
        await self.client.close()

    async def invoke(self, key):
        query = "select word from pg_get_keywords() where word = lower($1)"
        return key, await self.client.fetchval(query, key)


async def main():
    request = from_asyncio(AsyncDatabaseRequest())
    keys = ["SELECT", "FLINK"]
    async with unordered_wait(keys, request, timeout=1.0, capacity=100) as results:
        for result in sorted([result async for result in results]):
            print(result)


if __name__ == "__main__":
    trio.run(main)
