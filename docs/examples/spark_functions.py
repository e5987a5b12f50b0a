"""Needs the service: python -m udfs.demo.service"""

import asyncio

import trio
from pyspark.sql import SparkSession

from trio_asyncio_io.adapters import from_asyncio
from udfs import AsyncFunction, ordered_wait
from udfs.http import client


class Weather(AsyncFunction):
    def __init__(self, url):
        self.url = url  # attributes are pickled

    async def open(self):  # once per Python worker process
        self.http = client(base_url=self.url)

    async def invoke(self, origin, time_hour):  # once per row
        response = await self.http.get(f"/weather/{origin}/{time_hour}")
        found = response.raise_for_status().json()
        return {"temp": found["temp"], "wind_speed": found["wind_speed"]}

    async def close(self):
        await self.http.aclose()


def one_client_per_worker(flights):
    found = ordered_wait(
        flights,
        Weather("http://127.0.0.1:8000"),
        "temp double, wind_speed double",
        timeout=5.0,
    )
    print([row.temp for row in found.collect()])


async def weather_of_many(origins, time_hours):  # a list for each column
    await trio.sleep(0.01)  # call a service here, once for all rows
    return [39.0 for _ in origins]


def many_rows_in_one_call(flights):
    found = ordered_wait(
        flights,
        weather_of_many,
        "temp double",
        inputs=["origin", "time_hour"],
        group=50,
        timeout=5.0,
    )
    print([row.temp for row in found.collect()])


async def lowered(origin):
    await asyncio.sleep(0.01)
    return origin.lower()


def asyncio_function(flights):
    lower = ordered_wait(
        flights, from_asyncio(lowered), "code string", inputs=["origin"], timeout=5.0
    )
    print([row.code for row in lower.collect()])


def main():
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    flights = spark.createDataFrame(
        [("EWR", "2013-01-01T10:00:00Z"), ("JFK", "2013-01-01T11:00:00Z")],
        "origin string, time_hour string",
    )
    one_client_per_worker(flights)
    many_rows_in_one_call(flights)
    asyncio_function(flights)
    spark.stop()


if __name__ == "__main__":
    main()
