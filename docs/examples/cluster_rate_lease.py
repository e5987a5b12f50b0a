import time
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from udfs import ClusterRate, unordered_wait

weather_service = ClusterRate(40, by="lease", name="weather")


async def lookup(row):
    return time.time()  # call a service here


def job(rows):
    called = unordered_wait(
        rows,
        lookup,
        "at double",
        inputs=["id"],
        timeout=5.0,
        cluster_rate=weather_service,
    )
    times = called.select(F.min("at"), F.max("at"), F.count("at"))
    return times.first()


def main():
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    one_partition = spark.range(0, 100, 1, 1)  # so one task has all rows
    with ThreadPoolExecutor() as threads:  # two jobs at once
        jobs = list(threads.map(job, [one_partition, one_partition]))
    first, last = min(begin for begin, _, _ in jobs), max(end for _, end, _ in jobs)
    calls = sum(count for _, _, count in jobs)
    print(calls, "calls, no more than 40 a second:", calls - 40 <= 40 * (last - first))
    spark.stop()


if __name__ == "__main__":
    main()
