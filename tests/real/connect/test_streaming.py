"""Streaming in a remote session: files come in, and each row comes out once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import trio
from pyspark.sql import DataFrame, SparkSession

from tests.streaming import PatientQuery
from tests.support import PATIENCE
from udfs import CarryOver, async_pandas_udf, keyed_wait, ordered_wait, unordered_wait

FILES = 2
ROWS = 40


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> DataFrame:
    """0 to 39 in two micro-batches, with the times to go with it."""
    source = str(tmp_path / "source")
    for number in range(FILES):
        rows = spark.range(number * ROWS // FILES, (number + 1) * ROWS // FILES, 1, 1)
        rows.selectExpr("id", "timestamp_seconds(id) as ts").write.mode("append").parquet(source)
    return spark.readStream.schema("id long, ts timestamp").option("maxFilesPerTrigger", 1).parquet(source)


def finish(query: Any) -> None:
    """Let the query end; it must end well."""
    assert query.awaitTermination(PATIENCE)
    assert query.exception() is None


@pytest.mark.parametrize("door", ["column", "ordered", "unordered", "keyed"])
def test_every_row_comes_out_once_and_is_asked_for_once(
    spark: SparkSession, stream: DataFrame, service: Any, tmp_path: Path, door: str
) -> None:
    client = service.client

    async def ask(id: int) -> str:  # noqa: A002 - the column is called so
        return await client.ask(id)

    if door == "column":
        out = stream.withColumn("answer", async_pandas_udf(ask, "string", timeout=30.0)("id"))
    elif door == "keyed":
        out = keyed_wait(stream, ask, "answer string", key="id", timeout=30.0)
    elif door == "ordered":
        out = ordered_wait(stream, ask, "answer string", timeout=30.0)
    else:
        event_time = {"event_time": "ts", "max_out_of_orderness": "5 seconds"}
        out = unordered_wait(stream.withWatermark("ts", "1 minute"), ask, "answer string", timeout=30.0, **event_time)
    sink = str(tmp_path / "sink")
    writer = out.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
    finish(writer.trigger(availableNow=True).start(sink))
    assert sorted((row.id, row.answer) for row in spark.read.parquet(sink).collect()) == [
        (n, str(n)) for n in range(ROWS)
    ]
    assert Counter(service.calls) == Counter(map(str, range(ROWS)))


def test_a_stream_may_end_in_memory(spark: SparkSession, stream: DataFrame) -> None:
    async def double(id: int) -> int:  # noqa: A002 - the column is called so
        return 2 * id

    out = ordered_wait(stream, double, "twice long", timeout=30.0)
    finish(out.writeStream.format("memory").queryName("doubled").trigger(availableNow=True).start())
    assert [row.twice for row in spark.table("doubled").orderBy("id").collect()] == list(range(0, 2 * ROWS, 2))


def test_stragglers_are_carried_over(spark: SparkSession, stream: DataFrame, service: Any, tmp_path: Path) -> None:
    """The first call of one row in ten is never answered; the second is."""
    client = service.client
    asked: Counter[str] = Counter()

    async def answer(question: str) -> str:
        asked[question] += 1
        if int(question) % 10 == 0 and asked[question] == 1:
            await trio.sleep_forever()
        return question

    async def ask(id: int) -> str:  # noqa: A002 - the column is called so
        return await client.ask(id)

    service.answer = answer
    spark.conf.set(
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    )
    out = unordered_wait(stream, ask, "answer string", timeout=60.0, carry_over=CarryOver(budget=1.0))
    sink = str(tmp_path / "sink")
    writer = out.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
    running = PatientQuery(lambda: writer.trigger(processingTime="0.2 seconds").start(sink))
    try:
        while any(asked[str(n)] < 2 for n in range(0, ROWS, 10)):
            assert not running.has_ended(0.2)
        while spark.read.schema("id long, answer string").parquet(sink).count() < ROWS:
            assert not running.has_ended(0.2)
    finally:
        running.query.stop()
    rows = spark.read.schema("id long, answer string").parquet(sink).collect()
    assert sorted((row.id, row.answer) for row in rows) == [(n, str(n)) for n in range(ROWS)]
    assert asked == {str(n): 2 if n % 10 == 0 else 1 for n in range(ROWS)}
