"""What limited the calls of a query, by its metrics, with a planted bottleneck."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
import trio
from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from tests.support import PATIENCE
from trio_asyncio_io.gates import Auto, CircuitBreaker, Gate, Outcome, RateLimit
from trio_asyncio_io.policies import hedged
from udfs import explain, ordered_wait, summary, unordered_wait


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
    function = hedged(slow, after=0.01, budget=1.0)
    out = unordered_wait(spark.range(0, 14, 1, 2), function, "same long", timeout=PATIENCE, capacity=2, metrics=seen)
    assert out.count() == 14
    verdict = explain(seen)
    totals = json.loads(seen.get["explain"])
    assert (verdict.limit, totals["operators"], totals["peak_running"]) == ("capacity", 2, 2), verdict
    assert verdict.sentences[0].startswith("2 tasks in ")
    assert verdict.sentences[1].startswith("14 calls in ")
    assert ", summed over 2 operators: each " in verdict.sentences[1]
    assert verdict.sentences[-1].startswith("Each task has its own operator and capacity.")
    assert "capacity=4" in verdict.advice
    assert 0 < totals["hedged"] <= 14
    assert ", hedged " in summary(seen)


@pytest.mark.thorough
def test_a_query_whose_rows_arrive_slowly_is_limited_by_its_source(spark: SparkSession) -> None:
    """The rows are large, because Spark passes on small ones only when its buffer of 64 KiB is full."""
    seen = Observation()
    rows = spark.range(0, 21, 1, 1).withColumn("pad", F.repeat(F.lit("x"), 20_000))
    arriving = ordered_wait(rows, slow, "arrived long", timeout=PATIENCE, capacity=1)
    assert ordered_wait(arriving, fast, "same long", timeout=PATIENCE, metrics=seen).count() == 21
    assert explain(seen).limit == "source", explain(seen)


@pytest.mark.variation
def test_many_small_partitions_are_named_as_the_cause(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each task has two rows for eight slots, so it is nothing but a tail."""
    # Spark keeps workers by their environment: with one of its own, the job gets none that other tests have left
    monkeypatch.setitem(spark.sparkContext.environment, "TEST_OF_EXPLAIN", "small partitions")
    seen = Observation()
    rows = spark.range(0, 24, 1, 12)
    assert unordered_wait(rows, slow, "same long", timeout=PATIENCE, capacity=8, metrics=seen).count() == 24
    verdict, totals = explain(seen), json.loads(seen.get["explain"])
    assert totals["tasks.tasks"] == 12
    assert totals["tasks.at_once"] <= 2
    assert totals["tasks.tail"] >= 12 * 0.4
    assert verdict.sentences[0].startswith("12 tasks in ")
    assert "use fewer partitions, " in verdict.advice, verdict
    assert verdict.advice.endswith(" in place of 12.")


def test_a_skewed_partition_is_named_as_the_cause(spark: SparkSession) -> None:
    """One task has ten rows and the other has one, and then its worker has no task."""
    seen = Observation()
    rows = spark.range(0, 20, 1, 2).where("id <= 10")
    assert unordered_wait(rows, slow, "same long", timeout=PATIENCE, capacity=1, metrics=seen).count() == 11
    verdict = explain(seen)
    assert verdict.limit == "capacity", verdict
    assert "There was no task " in verdict.advice, verdict
    assert verdict.advice.endswith("repartition to 4 partitions of equal size.")


async def large(id: int) -> bytes:  # noqa: A002 - the name of the column
    await trio.lowlevel.checkpoint()
    return bytes(5_000_000)


def stops(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Reads twelve of 40 batches as fast as they come, and then stops for 40 times as long, on any machine."""
    began = 0.0
    for place, batch in enumerate(batches):
        began = began or time.monotonic()  # without the start of the workers
        if place == 12:
            time.sleep(40 * (time.monotonic() - began))
        yield batch.select(["id"])


@pytest.mark.thorough
def test_a_query_whose_results_are_read_slowly_is_limited_by_its_consumer(spark: SparkSession) -> None:
    """The results after the stop are larger than what the connections of two workers can buffer, in sum."""
    seen = Observation()
    batch = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(batch)
    spark.conf.set(batch, "1")
    try:
        rows = spark.range(0, 40, 1, 1)
        out = ordered_wait(rows, large, "same binary", timeout=PATIENCE, capacity=1, buffer=1, metrics=seen)
        assert out.mapInArrow(stops, "id long").count() == 40
    finally:
        spark.conf.set(batch, before)
    assert explain(seen).limit == "consumer", explain(seen)


def test_metrics_do_not_cut_off_the_text_of_the_plan(spark: SparkSession) -> None:
    gate = [RateLimit(1000), CircuitBreaker(), Auto(1, 3)]
    out = ordered_wait(spark.range(3), fast, "same long", timeout=PATIENCE, gate=gate, metrics="all")
    text = out._jdf.queryExecution().toString()
    assert "CollectMetrics all" in text
    assert "more fields" not in text


@pytest.mark.thorough
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
    assert "Summed over all calls: RateLimit " in verdict.sentences[-2]
    assert "gated by RateLimit " in summary(query.lastProgress["observedMetrics"]["gated"])
    assert explain(query, "gated") == verdict
    assert explain(query, "other").limit == "unknown"


class Countdown(Gate):
    """Has found less with each call."""

    left = 20

    def delay(self, now: float, weight: float) -> float:
        return 0.0

    def ended(self, now: float, seconds: float, outcome: Outcome, weight: float) -> None:
        self.left -= 1

    @property
    def finding(self) -> str:
        return f"{self.left} calls are left"


def test_what_a_gate_has_found_last_is_explained(spark: SparkSession) -> None:
    """A text that is later in the alphabet was reported before."""
    seen = Observation()
    rows = spark.range(0, 20, 1, 1)
    out = unordered_wait(
        rows, slow, "same long", timeout=PATIENCE, capacity=4, buffer=4, gate=Countdown(), metrics=seen
    )
    assert out.count() == 20
    assert "0 calls are left." in explain(seen).sentences, explain(seen)


def test_metrics_of_something_else_are_refused(spark: SparkSession) -> None:
    seen = Observation()
    assert spark.range(3).observe(seen, F.count("id").alias("rows")).count() == 3
    with pytest.raises(
        ValueError, match="the metrics have no 'explain': pass those of a query whose operator was given metrics="
    ):
        explain(seen)
    with pytest.raises(TypeError, match=r"metrics must be the Observation .*, got DataFrame\[id: bigint\]"):
        explain(spark.range(3))
