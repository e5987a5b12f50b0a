import sqlite3
import time
from contextlib import closing
from queue import SimpleQueue

import trio

from trio_asyncio_io import AsyncFunction, FixedDelay, unordered_wait
from trio_asyncio_io.adapters import in_thread

QUERY = "select name, wait(seconds) from customers where id = ?"


def connect(path):
    connection = sqlite3.connect(path, check_same_thread=False)
    connection.create_function("wait", 1, time.sleep)  # a query that takes its time
    return connection


def is_busy(error):
    return isinstance(error, sqlite3.OperationalError)  # "database is locked"


class Customers(AsyncFunction):
    def __init__(self, path, connections):
        self.path, self.connections = path, connections

    async def open(self):  # once, before the first call
        self.pool = SimpleQueue()
        for _ in range(self.connections):
            self.pool.put(connect(self.path))
        self.find = in_thread(self.query)

    def query(self, number):  # blocks, so it runs in a thread
        connection = self.pool.get()
        try:
            found = connection.execute(QUERY, [number]).fetchone()
            return found and found[0]
        finally:
            self.pool.put(connection)

    async def invoke(self, number):
        return number, await self.find(number)

    async def timeout(self, number):  # the result of a call that took too long
        return number, "unknown"

    async def close(self):  # waits for queries that were abandoned
        for _ in range(self.connections):
            connection = await trio.to_thread.run_sync(self.pool.get)
            connection.close()


def fill(path):
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("drop table if exists customers")
        database.execute("create table customers (id, name, seconds)")
        rows = [(n, f"customer {n}", 3.0 if n == 7 else 0.01) for n in range(100)]
        database.executemany("insert into customers values (?, ?, ?)", rows)


async def main():
    async with unordered_wait(
        range(100),
        Customers("customers.db", connections=20),
        capacity=20,
        timeout=2.0,
        retry=FixedDelay(3, 0.1, retry_on=is_busy),
    ) as results:
        found = dict([result async for result in results])
    print(len(found), "results;", found[6], "-", found[7])
    print(results.statistics().timed_out, "timed out")


if __name__ == "__main__":
    fill("customers.db")
    trio.run(main)
