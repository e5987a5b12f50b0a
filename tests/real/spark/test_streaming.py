"""Streaming: each row of the source is written once, and clients live on between micro-batches."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.entry_points import with_answer
from tests.service import Connected, Service, check_connected
from tests.streaming import FileStream
from tests.support import PATIENCE, thorough_except

ROWS = 40


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> FileStream:
    return FileStream.of_two_files(spark, tmp_path, ROWS)


@pytest.mark.parametrize("entry_point", thorough_except(["unordered"], ["column", "ordered", "unordered", "keyed"]))
def test_every_row_is_called_once_and_written_once(stream: FileStream, service: Service, entry_point: str) -> None:
    options: dict[str, Any] = {}
    df = stream.read()
    if entry_point == "unordered":
        df = df.withWatermark("ts", "1 minute")
        options = {"event_time": "ts", "max_out_of_orderness": "5 seconds"}
    rows = stream.run(with_answer(df, entry_point, Connected(service.client), **options))
    check_connected(rows, ROWS, service.calls)


def test_a_query_continues_from_its_checkpoint(stream: FileStream, service: Service) -> None:
    df = with_answer(stream.read(), "unordered", service.client.ask)
    assert len(stream.run(df)) == ROWS
    stream.add(ROWS, 60, ts="timestamp_seconds(id)")
    rows = stream.run(df)
    assert sorted(row.answer for row in rows) == sorted(map(str, range(60)))
    assert Counter(service.calls) == Counter(map(str, range(60)))


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
