import time

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from udfs import unordered_wait


async def lookup(row):
    return time.time()  # call a service here


def main():
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    rows = spark.range(0, 60, 1, 4)
    called = unordered_wait(
        rows, lookup, "at double", inputs=["id"], timeout=5.0, cluster_rate=20
    )
    seconds = called.select((F.max("at") - F.min("at")).alias("seconds"), F.count("at"))
    passed, calls = seconds.first()
    print(calls, "calls, no more than 20 a second:", calls - 20 <= 20 * passed)
    spark.stop()


if __name__ == "__main__":
    main()
