import tempfile
from pathlib import Path

import trio
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from udfs import ExponentialBackoff, ordered_wait, transient


class LookUp:
    def __init__(self, folder):
        self.is_up = trio.Path(folder, "the service is up")

    async def invoke(self, code):  # call your service here
        if code == "JFK" and not await self.is_up.exists():
            raise ConnectionError("the service is down")
        return code.lower()


def run(rows, function, good, dead):
    """Append the results to the table `good`, and replace `dead` by what has failed."""
    retry = ExponentialBackoff(2, initial=0.01, maximum=1.0, retry_on=transient)
    enriched = ordered_wait(
        rows, function, "found string", timeout=5.0, retry=retry, on_error="column"
    ).localCheckpoint()  # makes the calls, once
    failed = enriched.where("error is not null").drop("found")
    enriched.where("error is null").drop("error").write.mode("append").parquet(good)
    failed.withColumn("at", F.current_timestamp()).write.mode("overwrite").parquet(dead)
    for row in failed.select("code", "error.type", "error.attempts").collect():
        print(row)
    print(failed.count(), "dead letters")


def main():
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    rows = spark.createDataFrame([("EWR",), ("JFK",), ("LGA",)], "code string")
    with tempfile.TemporaryDirectory() as folder:
        good, dead = f"{folder}/good", f"{folder}/dead"
        run(rows, LookUp(folder), good, dead)

        Path(folder, "the service is up").touch()
        again = spark.read.parquet(dead).where("error.type = 'ConnectionError'")
        run(again.select("code"), LookUp(folder), good, dead)  # the replay
        print(sorted(row["found"] for row in spark.read.parquet(good).collect()))
    spark.stop()


if __name__ == "__main__":
    main()
