from pyspark.sql import Observation, SparkSession

from udfs import ExponentialBackoff, ordered_wait, summary, transient
from udfs.progress import progress


async def sometimes(origin):
    if origin == "JFK":
        raise ConnectionError("the service is down")
    return 39.0


def metrics(flights):
    retry = ExponentialBackoff(2, initial=0.01, maximum=0.1, retry_on=transient)
    seen = Observation("weather")
    ordered_wait(
        flights,
        sometimes,
        "temp double",
        timeout=5.0,
        retry=retry,
        on_error="null",
        metrics=seen,
    ).count()
    print(summary(seen))  # the times vary


def metadata(flights):
    how = ordered_wait(
        flights, sometimes, "temp double", timeout=5.0, on_error="null", metadata="how"
    )
    print([(row.origin, row.how.attempts, row.how.error) for row in how.collect()])


def with_progress(flights):
    with progress(description="weather"):
        ordered_wait(
            flights, sometimes, "temp double", timeout=5.0, on_error="null"
        ).count()


def main():
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    flights = spark.createDataFrame([("EWR",), ("JFK",), ("LGA",)], "origin string")
    metrics(flights)
    metadata(flights)
    with_progress(flights)
    spark.stop()


if __name__ == "__main__":
    main()
