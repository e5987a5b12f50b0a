"""Leaving early: when Spark wants no more, every call ends and every connection closes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession

from udfs import async_pandas_udf, ordered_wait, unordered_wait

KINDS = pytest.mark.parametrize("kind", ["column", "unordered"])


def asked(df: DataFrame, kind: str, function: Any, **more: Any) -> DataFrame:
    """With a new column `answer` by the door of this name."""
    if kind == "column":
        return df.select("id", async_pandas_udf(function, "string", timeout=600.0, **more)("id").alias("answer"))
    wait = ordered_wait if kind == "ordered" else unordered_wait
    return wait(df, function, "answer string", timeout=600.0, **more)


@pytest.fixture
def ask(service: Any) -> Callable[[int], Any]:
    client = service.client

    async def ask(id: int) -> str:  # noqa: A002 - the column is called so
        return await client.ask(id)

    return ask


ACTIONS = pytest.mark.parametrize(
    "action",
    [
        lambda df: df.first(),
        lambda df: df.take(1),
        lambda df: df.limit(1).collect(),
        lambda df: df.isEmpty(),
        lambda df: df.show(1),
    ],
    ids=["first", "take", "limit", "isEmpty", "show"],
)


@ACTIONS
@pytest.mark.parametrize("kind", ["column", "ordered", "unordered"])
def test_an_action_that_shows_one_row_ends_with_the_first_answers(
    spark: SparkSession, service: Any, ask: Any, kind: str, action: Callable[[DataFrame], object]
) -> None:
    """Two rows are answered (`show` looks one row ahead), the others never: the action waits for no other row."""
    hold = service.hold() and service.answer

    async def answer(question: str) -> str:
        if int(question) > 1:
            return await hold(question)  # type: ignore[no-any-return]
        await service.until(lambda: len(service.calls) >= 10)
        return question

    service.answer = answer
    # Spark cannot push the limit through a filter on the answer
    action(asked(spark.range(0, 1000, 1, 1), kind, ask, capacity=10).where("answer <> ''"))
    service.wait_until(lambda: service.running == 0 and service.connected == 0)
    assert len(service.calls) <= 10 + 2  # each answered call makes room for one more
    assert len(service.calls) - len(service.hung_up) == 2


@KINDS
def test_a_limit_makes_calls_for_its_rows_and_for_those_in_flight(
    spark: SparkSession, service: Any, ask: Any, kind: str
) -> None:
    """Five rows are answered, one after the other; the others never."""
    hold = service.hold() and service.answer
    answered = 5

    async def answer(question: str) -> str:
        if int(question) >= answered:
            return await hold(question)  # type: ignore[no-any-return]
        await service.until(lambda: len(service.calls) >= 10 + int(question))
        return question

    service.answer = answer
    df = asked(spark.range(0, 1000, 1, 1), kind, ask, capacity=10).where("answer <> ''")
    assert [row.id for row in df.limit(answered).collect()] == list(range(answered))
    service.wait_until(lambda: service.running == 0 and service.connected == 0)
    assert len(service.calls) <= 10 + answered


class Action(threading.Thread):
    """A Spark action that somebody else will end."""

    def __init__(self, df: DataFrame) -> None:
        super().__init__(name="action", daemon=True)
        self._df = df
        self.error: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            self._df.collect()
        except Exception as error:  # noqa: BLE001 - the test looks at it
            self.error = error


@KINDS
def test_cancelling_the_job_ends_the_calls_and_makes_no_more(
    spark: SparkSession, service: Any, ask: Any, kind: str
) -> None:
    service.hold()
    action = Action(asked(spark.range(0, 1000, 1, 4), kind, ask, capacity=10))
    service.wait_until(lambda: service.running == 20)
    spark.sparkContext.cancelAllJobs()
    action.join(60.0)
    assert "cancelled" in str(action.error)
    service.wait_until(lambda: service.running == 0 and service.connected == 0)
    assert len(service.calls) == len(service.hung_up) == 20


@KINDS
def test_stopping_a_query_ends_the_calls_and_makes_no_more(
    spark: SparkSession, service: Any, ask: Any, tmp_path: Path, kind: str
) -> None:
    service.hold()
    stream = spark.readStream.format("rate-micro-batch").options(rowsPerBatch=1000, numPartitions=4).load()
    df = asked(stream.withColumnRenamed("value", "id"), kind, ask, capacity=10)
    query = df.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()
    service.wait_until(lambda: service.running == 20)
    query.stop()
    service.wait_until(lambda: service.running == 0 and service.connected == 0)
    assert len(service.calls) == len(service.hung_up) == 20
    assert not query.isActive


def test_a_failure_in_one_task_ends_the_calls_of_the_others(spark: SparkSession, service: Any, ask: Any) -> None:
    hold = service.hold() and service.answer

    async def answer(question: str) -> str:
        if question != "0":
            return await hold(question)  # type: ignore[no-any-return]
        await service.until(lambda: service.running == 20)
        return "fail"

    async def fail(id: int) -> str:  # noqa: A002 - the column is called so
        if await ask(id) == "fail":
            raise ValueError("the service is on fire")
        return ""

    service.answer = answer
    with pytest.raises(PythonException, match="the service is on fire"):
        asked(spark.range(0, 1000, 1, 2), "unordered", fail, capacity=10).collect()
    service.wait_until(lambda: service.running == 0 and service.connected == 0)
    assert len(service.calls) == 20


def test_the_session_works_on_after_all_that(spark: SparkSession, ask: Any) -> None:
    assert asked(spark.range(0, 100, 1, 4), "ordered", ask).where("answer = id").count() == 100
