"""Start `python -m udfs.demo.service` first."""

from pyspark.sql import SparkSession

from udfs import AsyncFunction, ExponentialBackoff, transient, unordered_wait
from udfs.http import client


class Weather(AsyncFunction):
    def __init__(self, url):
        self.url = url

    async def open(self):  # once per Python worker process
        self.http = client(base_url=self.url)

    async def invoke(self, origin, time_hour):  # once per row
        response = await self.http.get(f"/weather/{origin}/{time_hour}")
        if response.status_code == 404:
            return None  # no weather: null in the new columns
        found = response.raise_for_status().json()
        return {"temp": found["temp"], "wind_speed": found["wind_speed"]}

    async def close(self):
        await self.http.aclose()


def main():
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    flights = spark.createDataFrame(
        [
            ("EWR", "2013-01-01T10:00:00Z"),
            ("JFK", "2013-01-01T10:00:00Z"),
            ("LAX", "2013-01-01T10:00:00Z"),
        ],
        "origin string, time_hour string",
    )
    enriched = unordered_wait(
        flights,
        Weather("http://127.0.0.1:8000"),
        "temp double, wind_speed double",  # the new columns
        inputs=["origin", "time_hour"],  # the arguments of invoke
        capacity=100,
        timeout=10.0,
        retry=ExponentialBackoff(3, initial=0.2, maximum=2.0, retry_on=transient),
        on_error="column",
    ).cache()
    for row in enriched.select("origin", "temp").orderBy("origin").collect():
        print(row)
    print("failed rows:", enriched.where("error is not null").count())
    spark.stop()


if __name__ == "__main__":
    main()
