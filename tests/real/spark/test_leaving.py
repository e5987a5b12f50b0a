"""Early ends: when Spark needs no more rows, every call ends and every connection closes."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession

from tests.entry_points import with_answer
from tests.service import Service
from tests.support import PATIENCE, thorough_except

CAPACITY = 10
ACTIONS: dict[str, Callable[[DataFrame], object]] = {
    "first": lambda df: df.first(),
    "take": lambda df: df.take(1),
    "limit": lambda df: df.limit(1).collect(),
    "isEmpty": lambda df: df.isEmpty(),
    "show": lambda df: df.show(1),
}
SHORT = [("column", "first"), ("ordered", "limit")]  # each early end costs a new Python worker: seconds
EVERY = list(product(["column", "ordered", "unordered"], ACTIONS))


def asking(df: DataFrame, entry_point: str, function: Any, **options: Any) -> DataFrame:
    return with_answer(df, entry_point, function, timeout=PATIENCE, **options)


def answer_only(service: Service, is_answered: Callable[[int], bool], calls: Callable[[int], int]) -> None:
    """Hold all questions but these, which are answered when the service has received that many calls."""
    service.hold()
    hold = service.answer

    async def answer(question: str) -> str:
        if not is_answered(int(question)):
            return await hold(question)
        await service.until(lambda: len(service.calls) >= calls(int(question)))
        return question

    service.answer = answer


def wait_until_all_have_hung_up(service: Service) -> None:
    service.wait_until(lambda: service.running == 0 and service.connected == 0)


@pytest.mark.parametrize(("entry_point", "action"), thorough_except(SHORT, EVERY))
def test_an_action_that_shows_one_row_ends_with_the_first_answers(
    spark: SparkSession, service: Service, entry_point: str, action: str
) -> None:
    """Two rows are answered (`show` looks one row ahead), the others never: the action waits for no other row."""
    answer_only(service, lambda row: row < 2, lambda _: CAPACITY)
    df = asking(spark.range(0, 1000, 1, 1), entry_point, service.client.ask, capacity=CAPACITY)
    ACTIONS[action](df.where("answer <> ''"))  # Spark cannot push the limit through a filter on the answer
    wait_until_all_have_hung_up(service)
    assert len(service.calls) <= CAPACITY + 2  # each answered call makes room for another one
    assert len(service.calls) - len(service.hung_up) == 2


class Action(threading.Thread):
    """A Spark action in a thread, so that the test can end it."""

    def __init__(self, df: DataFrame) -> None:
        super().__init__(name="action", daemon=True)
        self._df = df
        self.error: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            self._df.collect()
        except Exception as error:  # noqa: BLE001 - the test checks it
            self.error = error


@pytest.mark.parametrize("entry_point", thorough_except(["column"], ["column", "unordered"]))
def test_cancelling_the_job_ends_the_calls_and_makes_no_more(
    spark: SparkSession, service: Service, entry_point: str
) -> None:
    service.hold()
    action = Action(asking(spark.range(0, 1000, 1, 4), entry_point, service.client.ask, capacity=CAPACITY))
    service.wait_until(lambda: service.running == 2 * CAPACITY)
    spark.sparkContext.cancelAllJobs()
    action.join(PATIENCE)
    assert "cancelled" in str(action.error)
    wait_until_all_have_hung_up(service)
    assert len(service.calls) == len(service.hung_up) == 2 * CAPACITY


@pytest.mark.parametrize("entry_point", thorough_except(["unordered"], ["column", "unordered"]))
def test_stopping_a_query_ends_the_calls_and_makes_no_more(
    spark: SparkSession, service: Service, tmp_path: Path, entry_point: str
) -> None:
    service.hold()
    stream = spark.readStream.format("rate-micro-batch").options(rowsPerBatch=1000, numPartitions=4).load()
    df = asking(stream.withColumnRenamed("value", "id"), entry_point, service.client.ask, capacity=CAPACITY)
    query = df.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()
    service.wait_until(lambda: service.running == 2 * CAPACITY)
    query.stop()
    wait_until_all_have_hung_up(service)
    assert len(service.calls) == len(service.hung_up) == 2 * CAPACITY
    assert not query.isActive


def failing(ask: Callable[[int], Awaitable[str]]) -> Callable[[int], Awaitable[str]]:
    async def fail(id: int) -> str:  # noqa: A002 - the name of the column
        if await ask(id) == "fail":
            raise ValueError("the service is on fire")
        return ""

    return fail


@pytest.mark.thorough
def test_a_failure_in_one_task_ends_the_calls_of_the_others(spark: SparkSession, service: Service) -> None:
    service.hold()
    hold = service.answer

    async def answer(question: str) -> str:
        if question != "0":
            return await hold(question)
        await service.until(lambda: service.running == 2 * CAPACITY)
        return "fail"

    service.answer = answer
    df = asking(spark.range(0, 1000, 1, 2), "unordered", failing(service.client.ask), capacity=CAPACITY)
    with pytest.raises(PythonException, match="the service is on fire"):
        df.collect()
    wait_until_all_have_hung_up(service)
    assert len(service.calls) == 2 * CAPACITY
