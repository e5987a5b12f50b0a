"""Needs a PostgreSQL: DATABASE_URL=postgresql://... python operator_asyncpg.py"""

import os

import asyncpg
import trio

from trio_asyncio_io import ordered_wait
from trio_asyncio_io.adapters import from_asyncio


class Name:
    async def open(self):
        url = os.environ["DATABASE_URL"]
        self.pool = await asyncpg.create_pool(url, min_size=1, max_size=20)

    async def invoke(self, number):
        return await self.pool.fetchval("select 'customer ' || $1::int", number)

    async def close(self):
        await self.pool.close()


async def main():
    names = from_asyncio(Name())
    async with ordered_wait(range(3), names, capacity=20, timeout=5.0) as results:
        print([result async for result in results])


if __name__ == "__main__":
    trio.run(main)
