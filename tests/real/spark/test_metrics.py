"""Metrics: of each row in a column, and the totals of a query on the driver."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import trio
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from trio_asyncio_io.integration import duration
from trio_asyncio_io.policies import cached
from udfs import AsyncFunction, FixedDelay, async_pandas_udf, ordered_wait, summary, unordered_wait
from udfs._plan.metrics import observed_sums

ROWS = 40
TIMEOUT = 3.0  # seconds
HUNG = TIMEOUT - 0.1  # the deadline is set shortly before the call starts


class Moody(AsyncFunction[int, str]):
    """Of ten rows one needs three calls, one always fails, and one hangs."""

    def __init__(self) -> None:
        self.name = uuid4().hex  # with the same bytes as in another test, it would be the same instance

    async def open(self) -> None:
        self.attempts: dict[int, int] = {}

    async def invoke(self, id: int) -> str:  # type: ignore[override]  # noqa: A002 - the name of the column
        self.attempts[id] = self.attempts.get(id, 0) + 1
        await trio.sleep(0.001)
        if id % 10 == 3 and self.attempts[id] < 3:
            raise ConnectionError("not yet")
        if id % 10 == 5:
            raise ValueError("never")
        if id % 10 == 7:
            await trio.sleep_forever()
        return f"<{id}>"


OPTIONS: dict[str, Any] = {
    "timeout": TIMEOUT,
    "capacity": 20,
    "retry": FixedDelay(4, 0.0, retry_on=ConnectionError),
    "on_error": "null",
}


def attempts_of(number: int) -> int:
    return 3 if number % 10 == 3 else 1


def error_of(number: int) -> str | None:
    return {5: "ValueError", 7: "ElementTimeoutError"}.get(number % 10)


@pytest.fixture
def numbers(spark: SparkSession) -> DataFrame:
    return spark.range(0, ROWS, 1, 2)


def test_a_column_describes_the_calls_of_each_row(numbers: DataFrame) -> None:
    out = unordered_wait(numbers, Moody(), "answer string", metadata="how", **OPTIONS)
    assert out.columns == ["id", "answer", "how"]
    for row in out.collect():
        assert (row.how.attempts, row.how.error, row.how.cached) == (attempts_of(row.id), error_of(row.id), False)
        assert row.how.seconds >= (HUNG if row.id % 10 == 7 else 0.001)


@pytest.mark.thorough
def test_a_column_udf_adds_a_field_to_its_result_and_its_error(numbers: DataFrame) -> None:
    moody = async_pandas_udf(Moody(), "string", metadata="how", **OPTIONS | {"on_error": "column"})
    out = numbers.select("id", moody("id").alias("answer")).select("id", "answer.*")
    assert out.columns == ["id", "result", "error", "how"]
    for row in out.collect():
        assert (row.how.attempts, row.how.error) == (attempts_of(row.id), error_of(row.id))
        assert (row.error and row.error.type) == error_of(row.id)


def test_a_column_marks_results_from_a_cache(spark: SparkSession) -> None:
    async def echo(id: int) -> str:  # noqa: A002 - the name of the column
        await trio.sleep(0.001)
        return str(id)

    df = spark.range(0, 20, 1, 1).selectExpr("id % 4 as id")
    out = ordered_wait(df, cached(echo), "answer string", metadata="how", timeout=5.0, capacity=1).collect()
    assert [row.how.cached for row in out] == [False] * 4 + [True] * 16


TOTALS = {"rows": ROWS, "calls": ROWS + 2 * 4, "retried": 2 * 4, "failed": 8, "timed_out": 4, "cached": 0}


def test_the_totals_of_a_query_reach_the_driver(numbers: DataFrame) -> None:
    observation = Observation("moody")
    df = numbers.transform(ordered_wait, Moody(), "answer string", metrics=observation, **OPTIONS)
    assert df.columns == ["id", "answer"]
    assert df.count() == ROWS
    seen = observation.get
    assert {name: seen[name] for name in TOTALS} == TOTALS
    assert seen["slowest"] >= HUNG
    assert seen["seconds"] >= 4 * HUNG
    # 4 of 40 rows time out, so these are the fourth and the first longest
    p50, p95, p99 = (seen[name] for name in ("p50", "p95", "p99"))
    assert 0.001 <= p50 <= p95 <= p99 <= seen["slowest"]
    assert p95 >= HUNG
    line = summary(observation)
    assert line.startswith("40 rows, 48 calls, 8 retried, 8 failed, 4 timed out, 0 from a cache, mean ")
    assert line.endswith(f", p99 {duration(p99)}")


@pytest.mark.thorough
def test_each_micro_batch_reports_its_totals(spark: SparkSession, numbers: DataFrame, tmp_path: Path) -> None:
    incoming = str(tmp_path / "in")
    numbers.coalesce(1).write.json(incoming)
    numbers.where("id % 10 < 3").selectExpr("id + 100 as id").coalesce(1).write.mode("append").json(incoming)
    stream = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).json(incoming)
    query = (
        unordered_wait(stream, Moody(), "answer string", metrics="moody", **OPTIONS)
        .writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    reports = [progress for progress in query.recentProgress if progress["numInputRows"]]
    seen = [observed_sums(progress["observedMetrics"]["moody"]) for progress in reports]
    assert sorted(each["rows"] for each in seen) == [12, ROWS]
    [largest] = [each for each in seen if each["rows"] == ROWS]
    assert {name: largest[name] for name in TOTALS} == TOTALS


@pytest.mark.thorough
def test_errors_can_hide_values(spark: SparkSession) -> None:
    async def fail(secret: str) -> int:
        await trio.lowlevel.checkpoint()
        if secret == "hunter1":
            return "not a number, but hunter1"  # type: ignore[return-value]
        raise ValueError("the service refuses")

    for secret, shown_instead in (("hunter2", "the service refuses"), ("hunter1", "fail returned str for row 0")):
        df = spark.createDataFrame([(secret,)], "secret string").coalesce(1)
        for shown in (True, False):
            out = ordered_wait(df, fail, "answer int", timeout=5.0, show_values=shown)
            with pytest.raises(PythonException) as caught:
                out.collect()
            assert (secret in str(caught.value)) == shown
            assert shown or shown_instead in str(caught.value)
            assert shown or "row 0 of Arrow batch 0" in str(caught.value)


async def as_it_is(id: int) -> int:  # noqa: A002 - the name of the column
    return id


@pytest.mark.thorough
def test_several_threads_of_spark_may_read_the_metrics(spark: SparkSession) -> None:
    """In Spark 4.0 each reader computes them: the listener of an `Observation`, and a server of remote sessions."""
    df = unordered_wait(spark.range(0, 12, 1, 1), as_it_is, "same long", timeout=30.0, metrics=Observation())
    df.collect()
    query = df._jdf.queryExecution()

    def read(_: int) -> str:
        return str(query.observedMetrics().toString())

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(read, range(400)))) == 1


@pytest.mark.variation
def test_a_query_may_have_observations_of_the_user_too(numbers: DataFrame) -> None:
    ours, theirs = Observation(), Observation()
    out = ordered_wait(numbers, Moody(), "answer string", metrics=ours, **OPTIONS)
    assert out.observe(theirs, F.count("answer").alias("good")).count() == ROWS
    assert (ours.get["failed"], theirs.get["good"]) == (8, ROWS - 8)
