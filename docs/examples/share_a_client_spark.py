"""Needs the service: python -m udfs.demo.service"""

import os

from pyspark.sql import SparkSession

from udfs import ordered_wait, shared
from udfs.http import client


def connect():
    return client(base_url="http://127.0.0.1:8000")


weather = shared("weather", connect)


async def now(origin, time_hour):
    async with weather as http:
        response = await http.get(f"/weather/{origin}/{time_hour}")
        return response.raise_for_status().json()["temp"], os.getpid(), id(http)


async def of_the_hour_before(origin, time_hour):
    before = f"{time_hour[:11]}{int(time_hour[11:13]) - 1:02}{time_hour[13:]}"
    return await now(origin, before)


def main():
    spark = SparkSession.builder.master("local[1]").getOrCreate()
    flights = spark.createDataFrame(
        [("EWR", "2013-01-01T10:00:00Z"), ("JFK", "2013-01-01T11:00:00Z")],
        "origin string, time_hour string",
    ).coalesce(1)
    clients = set()
    for function in (now, of_the_hour_before):
        columns = "temp double, process long, client long"
        rows = ordered_wait(flights, function, columns, timeout=10.0).collect()
        print([row.temp for row in rows])
        clients |= {(row.process, row.client) for row in rows}
    processes = {process for process, _ in clients}
    print("clients per process:", len(clients) / len(processes))
    spark.stop()


if __name__ == "__main__":
    main()
