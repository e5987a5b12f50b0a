"""A job in one worker with a daemon that differs from PySpark's: a column UDF, then a DataFrame operator."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from udfs import async_pandas_udf, unordered_wait

CONF = {
    "spark.master": "local[1]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.python.daemon.module": "changed_daemon",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "7",
}


async def double(id: int) -> int:  # noqa: A002 - the name of the column
    return 2 * id


def main() -> None:
    spark = SparkSession.builder.config(map=CONF).getOrCreate()
    numbers = spark.range(0, 50, 1, 1)
    column = numbers.select("id", async_pandas_udf(double, "long", timeout=60.0)("id").alias("twice"))
    rows = unordered_wait(numbers, double, "twice long", timeout=60.0)
    for out in (column, rows):
        sys.stdout.write(f"rows {sorted(map(tuple, out.collect()))}\n")
    spark.stop()


if __name__ == "__main__":
    main()
