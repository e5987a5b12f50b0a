"""Start `python -m udfs.demo.service` first."""

from pyspark.sql import SparkSession

from trio_asyncio_io.policies import cached, single_flight
from udfs import AsyncFunction, ExponentialBackoff, transient, unordered_wait
from udfs.http import client


class FlightFacts(AsyncFunction):
    def __init__(self, url):
        self.url = url

    async def open(self):  # once per Python worker
        self.http = client(base_url=self.url)
        self.look_up = cached(single_flight(self.get))

    async def invoke(self, origin, time_hour, tailnum):  # once per row
        weather = await self.look_up(f"/weather/{origin}/{time_hour}") or {}
        plane = (await self.look_up(f"/planes/{tailnum}") or {}) if tailnum else {}
        return {"temp": weather.get("temp"), "model": plane.get("model")}

    async def close(self):
        await self.http.aclose()

    async def get(self, path):
        response = await self.http.get(path)
        if response.status_code == 404:
            return None
        return response.raise_for_status().json()


def main():
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    flights = spark.createDataFrame(
        [
            ("EWR", "2013-01-01T10:00:00Z", "N14228"),
            ("JFK", "2013-01-01T10:00:00Z", None),
        ],
        "origin string, time_hour string, tailnum string",
    )
    enriched = unordered_wait(
        flights.selectExpr("*", "to_timestamp(time_hour) as scheduled"),
        FlightFacts("http://127.0.0.1:8000"),
        "temp double, model string",
        inputs=["origin", "time_hour", "tailnum"],
        capacity=800,
        timeout=10.0,
        retry=ExponentialBackoff(4, initial=0.05, maximum=1.0, retry_on=transient),
        on_error="column",
        event_time="scheduled",
        max_out_of_orderness="2 hours",
    )
    for row in sorted(enriched.select("origin", "temp", "model", "error").collect()):
        print(row)
    spark.stop()


if __name__ == "__main__":
    main()
