"""What limited the calls of a query, by its metrics, with a planted bottleneck."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from tests.support import PATIENCE
from trio_asyncio_io.gates import RateLimit
from udfs import explain, ordered_wait, unordered_wait


async def slow(id: int) -> int:  # noqa: A002 - the name of the column
    await trio.sleep(0.5)
    return id


async def fast(id: int) -> int:  # noqa: A002 - the name of the column
    await trio.lowlevel.checkpoint()
    return id


@pytest.fixture(autouse=True, scope="module")
def _warm(spark: SparkSession) -> None:
    """The first results of a worker take seconds, in which it imports Arrow and pandas."""
    unordered_wait(spark.range(0, 4, 1, 2), fast, "same long", timeout=PATIENCE, metrics="warm").count()


def test_two_tasks_that_lack_slots_are_limited_by_their_capacity(spark: SparkSession) -> None:
    seen = Observation()
    out = unordered_wait(spark.range(0, 14, 1, 2), slow, "same long", timeout=PATIENCE, capacity=2, metrics=seen)
    assert out.count() == 14
    verdict = explain(seen)
    assert (verdict.limit, seen.get["explain_operators"], seen.get["explain_peak"]) == ("capacity", 2, 2), verdict
    assert verdict.sentences[0].startswith("14 calls in ")
    assert ", summed over 2 operators: each " in verdict.sentences[0]
    assert verdict.sentences[-1].startswith("Each task has its own operator and capacity.")
    assert "capacity=4" in verdict.advice


@pytest.mark.thorough
def test_a_query_whose_rows_arrive_slowly_is_limited_by_its_source(spark: SparkSession) -> None:
    """The rows are large, because Spark passes on small ones only when its buffer of 64 KiB is full."""
    seen = Observation()
    rows = spark.range(0, 21, 1, 1).withColumn("pad", F.repeat(F.lit("x"), 20_000))
    arriving = ordered_wait(rows, slow, "arrived long", timeout=PATIENCE, capacity=1)
    assert ordered_wait(arriving, fast, "same long", timeout=PATIENCE, metrics=seen).count() == 21
    assert explain(seen).limit == "source", explain(seen)


def test_a_stream_is_explained_by_its_micro_batches(spark: SparkSession, tmp_path: Path) -> None:
    """Of four rows in a micro-batch, three wait for the gate."""
    incoming = str(tmp_path / "in")
    spark.range(0, 8, 1, 2).write.json(incoming)
    stream = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).json(incoming)
    out = unordered_wait(stream, fast, "same long", timeout=PATIENCE, metrics="gated", gate=RateLimit(1.0))
    query = (
        out.writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    verdict = explain(query)
    assert verdict.sentences[0].startswith("8 calls in ")
    assert verdict.limit == "gate", verdict
    assert explain(query, "gated") == verdict
    assert explain(query, "other").limit == "unknown"


def test_metrics_of_something_else_are_refused(spark: SparkSession) -> None:
    seen = Observation()
    assert spark.range(3).observe(seen, F.count("id").alias("rows")).count() == 3
    with pytest.raises(ValueError, match="no 'explain_operators' among the metrics: pass what metrics= of an operator"):
        explain(seen)
