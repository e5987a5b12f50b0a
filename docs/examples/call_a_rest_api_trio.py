"""Start `python -m udfs.demo.service` first."""

import trio

from trio_asyncio_io import AsyncFunction, ExponentialBackoff, ordered_wait, transient
from udfs.http import client


class Weather(AsyncFunction):
    async def open(self):  # once, before the first call
        self.http = client(base_url="http://127.0.0.1:8000")

    async def invoke(self, flight):  # once per element
        origin, time_hour = flight
        response = await self.http.get(f"/weather/{origin}/{time_hour}")
        if response.status_code == 404:
            return origin, None
        return origin, response.raise_for_status().json()["temp"]

    async def close(self):
        await self.http.aclose()


async def main():
    flights = [(origin, "2013-01-01T10:00:00Z") for origin in ("EWR", "JFK", "LAX")]
    retry = ExponentialBackoff(3, initial=0.2, maximum=2.0, retry_on=transient)
    async with ordered_wait(
        flights, Weather(), capacity=100, timeout=10.0, retry=retry
    ) as results:
        async for origin, temp in results:
            print(origin, temp)


if __name__ == "__main__":
    trio.run(main)
