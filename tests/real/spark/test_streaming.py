"""Streaming: each row of the source is written once, and clients live on between micro-batches."""

from __future__ import annotations

import os
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from tests.entry_points import with_answer
from tests.service import Client, Service
from tests.support import PATIENCE, thorough_except
from udfs import AsyncFunction

FILES = 2
ROWS_PER_FILE = 20
ROWS = FILES * ROWS_PER_FILE


class Stream:
    """A folder of files as a stream, one file for each micro-batch, and a query over it that can be restarted."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.source, self.sink, self.checkpoint = (str(folder / name) for name in ("source", "sink", "checkpoint"))
        self.files = 0

    def add(self, files: int) -> None:
        """Add files with the next numbers."""
        for number in range(self.files, self.files + files):
            rows = self.spark.range(number * ROWS_PER_FILE, (number + 1) * ROWS_PER_FILE, 1, 1)
            rows.withColumn("ts", F.timestamp_seconds("id")).write.mode("append").parquet(self.source)
        self.files += files

    def read(self) -> DataFrame:
        return (
            self.spark.readStream.schema("id long, ts timestamp").option("maxFilesPerTrigger", 1).parquet(self.source)
        )

    def run(self, df: DataFrame) -> list[Any]:
        """The rows of the sink when the query has read all files."""
        writer = df.writeStream.format("parquet").option("checkpointLocation", self.checkpoint)
        query = writer.trigger(availableNow=True).start(self.sink)
        assert query.awaitTermination(PATIENCE)
        assert query.exception() is None
        return self.spark.read.parquet(self.sink).collect()


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> Stream:
    made = Stream(spark, tmp_path)
    made.add(FILES)
    return made


class Connected(AsyncFunction[int, str]):
    """Returns the answer and the id of the process. `open` runs once per process."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def open(self) -> None:
        await self.client.ask(f"opened in {os.getpid()}")

    async def invoke(self, id: int) -> str:  # noqa: A002 - the name of the column
        return f"{await self.client.ask(id)} in {os.getpid()}"


@pytest.mark.parametrize("entry_point", thorough_except(["unordered"], ["column", "ordered", "unordered", "keyed"]))
def test_every_row_is_called_once_and_written_once(stream: Stream, service: Service, entry_point: str) -> None:
    options: dict[str, Any] = {}
    df = stream.read()
    if entry_point == "unordered":
        df = df.withWatermark("ts", "1 minute")
        options = {"event_time": "ts", "max_out_of_orderness": "5 seconds"}
    rows = stream.run(with_answer(df, entry_point, Connected(service.client), **options))
    assert sorted((row.id, row.answer.split()[0]) for row in rows) == [(n, str(n)) for n in range(ROWS)]
    processes = {row.answer.split()[-1] for row in rows}
    opened = [f"opened in {process}" for process in processes]
    assert Counter(service.calls) == Counter([*map(str, range(ROWS)), *opened])


def test_a_query_continues_from_its_checkpoint(stream: Stream, service: Service) -> None:
    df = with_answer(stream.read(), "unordered", service.client.ask)
    assert len(stream.run(df)) == ROWS
    stream.add(1)
    rows = stream.run(df)
    assert sorted(row.answer for row in rows) == sorted(map(str, range(ROWS + ROWS_PER_FILE)))
    assert Counter(service.calls) == Counter(map(str, range(ROWS + ROWS_PER_FILE)))


async def double(value: int) -> int:
    return 2 * value


@pytest.mark.variation
@pytest.mark.parametrize("entry_point", thorough_except(["unordered"], ["column", "ordered", "unordered", "keyed"]))
def test_the_source_may_be_rate_and_the_sink_foreach_batch(
    spark: SparkSession, tmp_path: Path, entry_point: str
) -> None:
    seen: dict[int, list[tuple[int, int]]] = {}
    enough = threading.Event()

    def keep(df: DataFrame, batch: int) -> None:
        seen[batch] = [(row.value, row.answer) for row in df.collect()]
        if sum(map(len, seen.values())) >= 20:
            enough.set()

    source = spark.readStream.format("rate").option("rowsPerSecond", 50).option("numPartitions", 2).load()
    writer = with_answer(source, entry_point, double, "long", inputs=["value"]).writeStream.foreachBatch(keep)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        assert enough.wait(PATIENCE), query.exception()
    finally:
        query.stop()
    rows = sorted(row for rows in seen.values() for row in rows)
    assert rows == [(n, 2 * n) for n in range(len(rows))]
