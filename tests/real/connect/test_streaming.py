"""Streaming in a remote session: each row of the source is written once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import trio
from pyspark.sql import DataFrame, SparkSession

from tests.entry_points import with_answer
from tests.service import Service
from tests.streaming import ROCKSDB, STATE_STORE, PatientQuery, committed
from tests.support import PATIENCE
from udfs import CarryOver

FILES = 2
ROWS = 40


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> DataFrame:
    """0 to 39 with timestamps, in two micro-batches."""
    source = str(tmp_path / "source")
    for number in range(FILES):
        rows = spark.range(number * ROWS // FILES, (number + 1) * ROWS // FILES, 1, 1)
        rows.selectExpr("id", "timestamp_seconds(id) as ts").write.mode("append").parquet(source)
    return spark.readStream.schema("id long, ts timestamp").option("maxFilesPerTrigger", 1).parquet(source)


def finish(query: Any) -> None:
    """Wait until the query ends without an error."""
    assert query.awaitTermination(PATIENCE)
    assert query.exception() is None


@pytest.mark.parametrize("entry_point", ["column", "ordered", "unordered", "keyed"])
def test_every_row_is_called_once_and_written_once(
    spark: SparkSession, stream: DataFrame, service: Service, tmp_path: Path, entry_point: str
) -> None:
    options: dict[str, Any] = {}
    if entry_point == "unordered":
        stream = stream.withWatermark("ts", "1 minute")
        options = {"event_time": "ts", "max_out_of_orderness": "5 seconds"}
    out = with_answer(stream, entry_point, service.client.ask, **options)
    writer = out.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
    finish(writer.trigger(availableNow=True).start(str(tmp_path / "sink")))
    rows = committed(tmp_path / "sink")
    assert sorted((row.id, row.answer) for row in rows) == [(n, str(n)) for n in range(ROWS)]
    assert Counter(service.calls) == Counter(map(str, range(ROWS)))


def test_stragglers_are_carried_over(spark: SparkSession, stream: DataFrame, service: Service, tmp_path: Path) -> None:
    """The service leaves the first call of one row in ten unanswered."""
    attempts: Counter[str] = Counter()

    async def answer(question: str) -> str:
        attempts[question] += 1
        if int(question) % 10 == 0 and attempts[question] == 1:
            await trio.sleep_forever()
        return question

    service.answer = answer
    spark.conf.set(STATE_STORE, ROCKSDB)
    carry_over = CarryOver(budget=1.0)
    out = with_answer(stream, "unordered", service.client.ask, timeout=PATIENCE, carry_over=carry_over)
    writer = out.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
    running = PatientQuery(lambda: writer.trigger(processingTime="0.2 seconds").start(str(tmp_path / "sink")))
    try:
        while len(committed(tmp_path / "sink")) < ROWS:
            assert not running.has_ended(0.2)
    finally:
        running.query.stop()
    rows = committed(tmp_path / "sink")
    assert sorted((row.id, row.answer) for row in rows) == [(n, str(n)) for n in range(ROWS)]
    assert all(attempts[str(n)] > 1 for n in range(0, ROWS, 10))  # they were carried over
