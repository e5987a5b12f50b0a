"""Needs the service: python -m udfs.demo.service"""

from pyspark.sql import SparkSession

from trio_asyncio_io import transient
from udfs import AsyncFunction, ExponentialBackoff, async_pandas_udf, unordered_wait
from udfs.http import client


class Weather(AsyncFunction):
    async def open(self):  # once per Python worker
        self.http = client(base_url="http://127.0.0.1:8000")

    async def invoke(self, origin, time_hour):  # once per row
        response = await self.http.get(f"/weather/{origin}/{time_hour}")
        found = response.raise_for_status().json()
        return {"temp": found["temp"], "wind_speed": found["wind_speed"]}

    async def close(self):
        await self.http.aclose()


def main():
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    flights = spark.createDataFrame(
        [("EWR", "2013-01-01T10:00:00Z"), ("LAX", "2013-01-01T10:00:00Z")],
        "origin string, time_hour string",
    )
    schema = "temp double, wind_speed double"  # the new columns

    # Whole rows, each as soon as it has its result
    enriched = unordered_wait(
        flights,
        Weather(),
        schema,
        inputs=["origin", "time_hour"],
        capacity=100,
        timeout=5.0,
        retry=ExponentialBackoff(3, initial=0.1, maximum=1.0, retry_on=transient),
        on_error="column",  # failed rows get a struct with the error
    )
    enriched.select("origin", "temp", "error.type").orderBy("origin").show()

    # A column, each value in its own row
    weather = async_pandas_udf(Weather(), f"struct<{schema}>", timeout=5.0)
    newark = flights.where("origin = 'EWR'")
    newark.select("origin", weather("origin", "time_hour").temp.alias("temp")).show()
    spark.stop()


if __name__ == "__main__":
    main()
