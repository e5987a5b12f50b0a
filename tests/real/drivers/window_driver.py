"""A driver for test_fixed_window.py: four tasks at once call a service that admits a number of calls per second.

    python window_driver.py URL ROWS

It writes the sorted ids of the answers.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

import udfs.http
from trio_asyncio_io.gates import Auto
from udfs import AsyncFunction, ExponentialBackoff, transient, unordered_wait

CONF = {
    "spark.master": "local[4]",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
TASKS = 4


class Fetch(AsyncFunction[int, str]):
    """Sends a request with the row."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def open(self) -> None:
        self.client = udfs.http.client()

    async def invoke(self, id: int) -> str:  # noqa: A002 - the name of the column
        response = await self.client.get(f"{self.url}/{id}")
        return response.raise_for_status().text.rsplit("/", 1)[-1]

    async def close(self) -> None:
        await self.client.aclose()


def main(url: str, rows: int) -> None:
    spark = SparkSession.builder.config(map=CONF).getOrCreate()
    df = unordered_wait(
        spark.range(0, rows, 1, TASKS),
        Fetch(url),
        "answer string",
        timeout=600.0,
        capacity=20,
        retry=ExponentialBackoff(1_000, 0.1, 5.0, retry_on=transient),
        gate=Auto(most=20),
    )
    sys.stdout.write(" ".join(map(str, sorted(int(row.answer) for row in df.collect()))))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
