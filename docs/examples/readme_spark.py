"""Start `python -m udfs.demo.service` first."""

from pyspark.sql import SparkSession

from udfs import AsyncFunction, ExponentialBackoff, transient, unordered_wait
from udfs.http import client


class Weather(AsyncFunction):
    async def open(self):  # once per Python worker
        self.http = client(base_url="http://127.0.0.1:8000")

    async def invoke(self, origin, time_hour):  # once per row, with these columns
        response = await self.http.get(f"/weather/{origin}/{time_hour}")
        return {"temp": response.raise_for_status().json()["temp"]}


if __name__ == "__main__":
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    flights = spark.createDataFrame(
        [("EWR", "2013-01-01T10:00:00Z"), ("LAX", "2013-01-01T10:00:00Z")],
        "origin string, time_hour string",
    )
    with_weather = unordered_wait(
        flights,
        Weather(),
        "temp double",  # the new column
        capacity=100,  # calls at a time, in each task
        timeout=5.0,  # seconds for a row, retries included
        retry=ExponentialBackoff(3, initial=0.1, maximum=1.0, retry_on=transient),
        on_error="column",  # a failed row comes out, too, with its error
    )
    with_weather.select("origin", "temp", "error.type").orderBy("origin").show()
