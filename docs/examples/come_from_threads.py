import time

from pyspark.sql import SparkSession

from trio_asyncio_io.adapters import in_thread
from udfs import ordered_wait


def call(city):
    time.sleep(0.01)
    return f"{city}: fine"


def main():
    spark = SparkSession.builder.master("local[1]").getOrCreate()
    cities = spark.createDataFrame([("Oslo",), ("Rome",)], "city string")
    new = "weather string"
    ordered_wait(cities, in_thread(call), new, capacity=20, timeout=5.0).show()
    spark.stop()


if __name__ == "__main__":
    main()
