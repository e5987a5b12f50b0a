"""A job that doubles the numbers from a socket with each entry point and shows them on its console.

    python console_job.py PORT ENTRY_POINT...

It never ends.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from tests.entry_points import with_answer

CONF = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


async def double(value: int) -> int:
    return 2 * value


def main(port: int, entry_points: list[str]) -> None:
    spark = SparkSession.builder.config(map=CONF).getOrCreate()
    source = spark.readStream.format("socket").option("host", "127.0.0.1").option("port", port).load()
    df = source.selectExpr("cast(value as long) as value")
    for entry_point in entry_points:
        out = with_answer(df, entry_point, double, "long", inputs=["value"])
        out.writeStream.format("console").option("numRows", 1000).start()
    spark.streams.awaitAnyTermination()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
