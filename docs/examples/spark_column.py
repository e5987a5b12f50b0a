import trio
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from udfs import async_pandas_udf


@async_pandas_udf("struct<temp double, wind double>", capacity=100, timeout=5.0)
async def weather_at(origin, time_hour):
    await trio.sleep(0.01)  # call a service here
    return {"temp": 39.0, "wind": 10.4}


async def country(ip):
    return {"203.0.113.7": "NL"}.get(ip)


def column(flights):
    weather = flights.select(
        "origin", weather_at("origin", "time_hour").alias("weather")
    )
    print([tuple(row) for row in weather.select("origin", "weather.temp").collect()])


def elsewhere(flights):
    temp = weather_at("origin", F.col("time_hour"))["temp"]
    print(flights.withColumn("temp", temp).columns)
    print(flights.where(temp > 32).count())


def sql(spark):
    spark.udf.register("country", async_pandas_udf(country, "string", timeout=5.0))
    query = "select country(ip) from values ('203.0.113.7'), ('198.51.100.1') as t(ip)"
    print([tuple(row) for row in spark.sql(query).collect()])


def main():
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    flights = spark.createDataFrame(
        [("EWR", "2013-01-01T10:00:00Z"), ("JFK", "2013-01-01T11:00:00Z")],
        "origin string, time_hour string",
    )
    column(flights)
    elsewhere(flights)
    sql(spark)
    spark.stop()


if __name__ == "__main__":
    main()
