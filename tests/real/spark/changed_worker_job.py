"""A job in one worker with a daemon that differs from PySpark's: a column UDF, then a DataFrame operator.

Before Spark 4.1, the column UDF is refused.
"""

from __future__ import annotations

import sys

from pyspark.errors import PythonException

from tests.real.jobs import session
from udfs import async_pandas_udf, unordered_wait

CONF = {
    "spark.master": "local[1]",
    "spark.python.daemon.module": "changed_daemon",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "7",
}


async def double(id: int) -> int:  # noqa: A002 - the name of the column
    return 2 * id


def main() -> None:
    spark = session(CONF)
    numbers = spark.range(0, 50, 1, 1)
    column = numbers.select("id", async_pandas_udf(double, "long", timeout=60.0)("id").alias("twice"))
    rows = unordered_wait(numbers, double, "twice long", timeout=60.0)
    for out in (column, rows):
        try:
            sys.stdout.write(f"rows {sorted(map(tuple, out.collect()))}\n")
        except PythonException as error:
            sys.stdout.write(f"{error}\n")
    spark.stop()


if __name__ == "__main__":
    main()
