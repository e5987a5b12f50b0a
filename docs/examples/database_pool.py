"""Needs a PostgreSQL: DATABASE_URL=postgresql://... python database_pool.py"""

import asyncio
import os
from threading import Thread

import asyncpg
import trio

from trio_asyncio_io import AsyncFunction, ExponentialBackoff, transient, unordered_wait
from trio_asyncio_io.adapters import from_future


class DatabaseClient:
    """A client with a pool of connections, whose `query` returns a Future."""

    def __init__(self, url, connections):
        self.loop = asyncio.new_event_loop()
        self.thread = Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.pool = self.submit(self.connect(url, connections)).result()

    async def connect(self, url, connections):
        return await asyncpg.create_pool(url, min_size=1, max_size=connections)

    def submit(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    def query(self, key):
        return self.submit(self.pool.fetchval("select 'customer ' || $1::int", key))

    def close(self):
        self.submit(self.pool.close()).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


class AsyncDatabaseRequest(AsyncFunction):
    def __init__(self, url):
        self.url = url

    async def open(self):
        self.client = await trio.to_thread.run_sync(DatabaseClient, self.url, 20)
        self.query = from_future(self.client.query)

    async def invoke(self, key):
        return key, await self.query(key)

    async def close(self):
        await trio.to_thread.run_sync(self.client.close)


async def main():
    request = AsyncDatabaseRequest(os.environ["DATABASE_URL"])
    retry = ExponentialBackoff(3, initial=0.1, maximum=1.0, retry_on=transient)
    async with unordered_wait(
        range(100), request, capacity=20, timeout=5.0, retry=retry
    ) as results:
        found = dict([result async for result in results])
    print(len(found), "rows;", found[7])


if __name__ == "__main__":
    trio.run(main)
