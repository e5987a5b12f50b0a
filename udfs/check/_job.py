"""A Spark job with three calls, in a process of its own. Writes what it found as the last line of its output, as JSON.

Its process can hang or crash without the command: see `_spark`.
"""

from __future__ import annotations

import json
import platform
import sys
import time

from pyspark.sql import SparkSession

from .._dataframe import ordered_wait

__all__: list[str] = []


async def _python_of_worker(number: int) -> dict[str, object]:
    return {"twice": 2 * number, "python": sys.executable, "version": platform.python_version()}


def main() -> None:
    """Start a local session, call a function for three rows, and report it."""
    began = time.monotonic()
    spark = SparkSession.builder.master("local[1]").appName("udfs.check").getOrCreate()
    started = time.monotonic()
    numbers = spark.range(3).selectExpr("cast(id as int) as number")
    schema = "twice int, python string, version string"
    rows = ordered_wait(numbers, _python_of_worker, schema, timeout=60.0).collect()
    report = {
        "spark": spark.version,
        "python": rows[0].python,
        "version": rows[0].version,
        "twice": [row.twice for row in rows],
        "start_seconds": started - began,
        "seconds": time.monotonic() - started,
    }
    spark.stop()
    print(json.dumps(report))


if __name__ == "__main__":
    main()
