import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession

os.environ["PYSPARK_PYTHON"] = sys.executable  # or the workers run python3 on PATH


def call(city):
    time.sleep(0.01)  # in place of a blocking client
    return f"{city}: fine"


def weather(frames):
    with ThreadPoolExecutor(20) as pool:
        for frame in frames:
            frame["weather"] = list(pool.map(call, frame["city"]))
            yield frame


def main():
    spark = SparkSession.builder.master("local[1]").getOrCreate()
    cities = spark.createDataFrame([("Oslo",), ("Rome",)], "city string")
    cities.mapInPandas(weather, "city string, weather string").show()
    spark.stop()


if __name__ == "__main__":
    main()
