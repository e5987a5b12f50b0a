import trio
from pyspark.sql import SparkSession

from udfs import async_pandas_udf


@async_pandas_udf("string", capacity=100, timeout=5.0)
async def weather(city):
    await trio.sleep(0.01)
    return f"{city}: fine"


def main():
    spark = SparkSession.builder.master("local[1]").getOrCreate()
    cities = spark.createDataFrame([("Oslo",), ("Rome",)], "city string")
    cities.select("city", weather("city").alias("weather")).show()
    spark.stop()


if __name__ == "__main__":
    main()
