"""A job that shows on its console what a socket gives, doubled through each of the doors.

    python console_job.py PORT DOOR...

It never ends.
"""

from __future__ import annotations

import sys

from pyspark.sql import DataFrame, SparkSession

from udfs import async_pandas_udf, ordered_wait, unordered_wait

CONF = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


async def double(value: int) -> int:
    return 2 * value


def enriched(df: DataFrame, door: str) -> DataFrame:
    if door == "column":
        return df.withColumn("twice", async_pandas_udf(double, "long", timeout=30.0)("value"))
    wait = ordered_wait if door == "ordered" else unordered_wait
    return wait(df, double, "twice long", timeout=30.0)


def main(port: int, doors: list[str]) -> None:
    spark = SparkSession.builder.config(map=CONF).getOrCreate()
    source = spark.readStream.format("socket").option("host", "127.0.0.1").option("port", port).load()
    df = source.selectExpr("cast(value as long) as value")
    for door in doors:
        enriched(df, door).writeStream.format("console").option("numRows", 1000).start()
    spark.streams.awaitAnyTermination()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
