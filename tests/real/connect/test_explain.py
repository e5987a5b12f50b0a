"""What limited the calls of a query of a remote session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import trio
from pyspark.sql import Observation, SparkSession

from tests.support import PATIENCE
from trio_asyncio_io.gates import RateLimit
from udfs import FixedDelay, explain, summary, unordered_wait


async def same(id: int) -> int:  # noqa: A002 - the name of the column
    return id


async def down(id: int) -> int:  # noqa: A002 - the name of the column
    await trio.sleep(0.2)
    raise ConnectionError("down")


def test_a_query_is_explained(spark: SparkSession) -> None:
    options: dict[str, Any] = {
        "timeout": PATIENCE,
        "capacity": 2,
        "retry": FixedDelay(3, 0.1, retry_on=ConnectionError),
        "on_error": "null",
    }
    seen = Observation()
    rows = spark.range(0, 12, 1, 1)
    assert unordered_wait(rows, down, "same long", metrics=seen, **options).where("same is null").count() == 12
    assert explain(seen).limit == "retries", explain(seen)


def test_a_stream_is_explained(spark: SparkSession, tmp_path: Path) -> None:
    incoming = str(tmp_path / "in")
    spark.range(0, 8, 1, 2).write.json(incoming)
    stream = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).json(incoming)
    out = unordered_wait(stream, same, "same long", timeout=PATIENCE, metrics="gated", gate=RateLimit(1.0))
    writer = out.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(PATIENCE)
    verdict = explain(query)
    assert verdict.sentences[0].startswith("8 calls in ")
    assert verdict.limit == "gate", verdict
    assert summary(query.lastProgress["observedMetrics"]["gated"]).startswith("4 rows, 4 calls, ")
