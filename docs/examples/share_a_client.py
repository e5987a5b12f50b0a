from contextlib import asynccontextmanager

import trio
from trio.testing import MockClock

from trio_asyncio_io import ordered_wait, shared
from trio_asyncio_io.gates import RateLimit


class Client:  # instead of httpx.AsyncClient(...)
    async def get(self, city, field):
        await trio.sleep(0.1)
        return f"{field} of {city} at {trio.current_time():.1f}"


@asynccontextmanager
async def connect():
    print("open")
    yield Client()
    print("close")


weather = shared("weather", connect)


async def temperature(city):
    async with weather as client:
        return await client.get(city, "temperature")


async def wind(city):
    async with weather as client:
        return await client.get(city, "wind")


async def ask(function):
    # the same name: one limit of 2 calls per second for both operators
    gate = RateLimit(2, name="weather")
    async with ordered_wait(
        ["Oslo", "Rome"], function, timeout=5.0, gate=gate
    ) as results:
        return [result async for result in results]


async def main():
    async with weather, trio.open_nursery() as nursery:  # open until both have ended
        nursery.start_soon(ask, temperature)
        nursery.start_soon(ask, wind)
    print(f"4 calls in {trio.current_time():.1f} s")


if __name__ == "__main__":
    trio.run(main, clock=MockClock(autojump_threshold=0))
