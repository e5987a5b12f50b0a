import tempfile

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from trio_asyncio_io import transient
from udfs import ExponentialBackoff, ordered_wait


async def look_up(code):  # call your service here
    if code == "JFK":
        raise ConnectionError("the service is down")
    return code.lower()


def enrich(rows):
    retry = ExponentialBackoff(2, initial=0.01, maximum=1.0, retry_on=transient)
    return ordered_wait(
        rows, look_up, "found string", timeout=5.0, retry=retry, on_error="column"
    )


def write(enriched, folder):
    enriched = enriched.persist()  # otherwise each of the two writes makes the calls
    good = enriched.where("error is null").drop("error")
    dead = enriched.where("error is not null").drop("found")
    good.write.mode("append").parquet(f"{folder}/good")
    dead.withColumn("at", F.current_timestamp()).write.mode("append").parquet(
        f"{folder}/dead"
    )
    enriched.unpersist()


def main():
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    rows = spark.createDataFrame([("EWR",), ("JFK",), ("LGA",)], "code string")
    with tempfile.TemporaryDirectory() as folder:
        write(enrich(rows), folder)
        print(spark.read.parquet(f"{folder}/good").count(), "good rows")
        dead = spark.read.parquet(f"{folder}/dead")
        for row in dead.select("code", "error.type", "error.message").collect():
            print(row)
    spark.stop()


if __name__ == "__main__":
    main()
