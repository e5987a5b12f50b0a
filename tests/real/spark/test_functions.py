"""Every adapter and policy around a function, in a column UDF and in the DataFrame operators."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import trio
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from tests.entry_points import EVERY_ENTRY_POINT, with_answer
from tests.service import Service
from tests.support import PATIENCE, thorough_except
from trio_asyncio_io.adapters import ResultFuture, from_asyncio, from_callback, from_future, in_thread
from trio_asyncio_io.policies import cached, persistent, single_flight
from udfs import AsyncFunction, FixedDelay, RetryBudget, unordered_wait

ROWS = 60


def answered(df: DataFrame, entry_point: str, function: Any, **options: Any) -> dict[int, Any]:
    """id -> answer, a string; with `on_error="column"`: id -> (answer, error)."""
    rows = with_answer(df, entry_point, function, **{"capacity": 20, **options}).collect()
    assert len({row.id for row in rows}) == len(rows)
    return {row.id: row.answer if options.get("on_error") != "column" else (row.answer, row.error) for row in rows}


@pytest.fixture
def numbers(spark: SparkSession) -> DataFrame:
    return spark.range(0, ROWS, 1, 2)


EXPECTED = {number: f"<{number}>" for number in range(ROWS)}


def blocking(number: int) -> str:
    time.sleep(0.001)
    return f"<{number}>"


async def of_asyncio(number: int) -> str:
    await asyncio.sleep(0.001)
    return f"<{number}>"


class Pool:
    """Returns futures. Its threads start in the worker."""

    def __call__(self, number: int) -> Any:
        if not hasattr(self, "threads"):
            self.threads = ThreadPoolExecutor(4)
        return self.threads.submit(blocking, number)


def call_back(number: int, result_future: ResultFuture[str]) -> None:
    Thread(target=lambda: result_future.complete(blocking(number))).start()


async def one(number: int) -> str:
    await trio.sleep(0.001)
    return f"<{number}>"


class Opened(AsyncFunction[int, str]):
    """Can answer only after `open`."""

    async def open(self) -> None:
        self.mark = "<%d>"

    async def invoke(self, number: int) -> str:  # type: ignore[override]
        return self.mark % number


FUNCTIONS = {
    "in_thread": in_thread(blocking),
    "from_asyncio": from_asyncio(of_asyncio),
    "from_future": from_future(Pool()),
    "from_callback": from_callback(call_back),
    "cached and shared": cached(single_flight(Opened())),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("entry_point", thorough_except(["unordered"], ["column", "unordered"]))
def test_every_kind_of_function_works(numbers: DataFrame, entry_point: str, name: str) -> None:
    assert answered(numbers, entry_point, FUNCTIONS[name]) == EXPECTED


@EVERY_ENTRY_POINT
def test_rows_share_calls_and_the_last_ones_of_a_task_do_not_wait_for_more(
    numbers: DataFrame, entry_point: str, service: Service
) -> None:
    client = service.client

    async def ask_many(ids: list[int]) -> list[str]:
        await client.ask(",".join(map(str, ids)))
        return [f"<{each}>" for each in ids]

    assert answered(numbers, entry_point, ask_many, group=20, group_wait=3600.0) == EXPECTED
    sizes = sorted(len(call.split(",")) for call in service.calls)
    assert sizes == [10, 10, 20, 20]  # a partition has thirty


def test_with_several_columns_the_function_gets_a_list_for_each(numbers: DataFrame) -> None:
    async def add_many(ids: list[int], tens: list[int]) -> list[int | Exception]:
        return [a + b if a != 3 else ValueError("three") for a, b in zip(ids, tens, strict=True)]

    df = numbers.withColumn("ten", F.lit(10))
    out = unordered_wait(df, add_many, "sum long", inputs=["id", "ten"], timeout=PATIENCE, on_error="column", group=5)
    rows = {row.id: (row["sum"], row.error and row.error.message) for row in out.collect()}
    assert rows == {n: (n + 10, None) if n != 3 else (None, "three") for n in range(ROWS)}


@EVERY_ENTRY_POINT
def test_results_that_an_earlier_job_stored_are_not_requested_again(
    numbers: DataFrame, entry_point: str, service: Service, tmp_path: Path
) -> None:
    """Two tasks in two processes write one file, which the second job reads."""
    client = service.client

    async def ask(id: int) -> str:  # noqa: A002 - the name of the column
        return f"<{await client.ask(id)}>"

    for name in ("first job", "second job"):
        lookup = persistent(ask, tmp_path / "answers.sqlite", name="ask")
        assert answered(numbers.withColumn("job", F.lit(name)), entry_point, lookup) == EXPECTED
    assert sorted(map(int, service.calls)) == list(range(ROWS))


@EVERY_ENTRY_POINT
def test_delays_attempt_timeouts_and_a_retry_budget_apply(
    numbers: DataFrame, entry_point: str, service: Service
) -> None:
    """The first attempt of each row hangs. Each of two tasks has a budget for seven retries."""
    client = service.client

    async def ask(id: int) -> str:  # noqa: A002 - the name of the column
        return await client.ask(id)

    async def answer(question: str) -> str:
        if service.calls.count(question) == 1:
            await trio.sleep_forever()
        return f"<{question}>"

    service.answer = answer
    retry = FixedDelay(2, 0.0, attempt_timeout=2.0, budget=RetryBudget(ratio=0.0, reserve=7))
    rows = answered(numbers, entry_point, ask, retry=retry, on_error="column", capacity=30)
    assert len(rows) == ROWS
    good = {id: answer for id, (answer, error) in rows.items() if error is None}  # noqa: A001 - the name of the column
    assert len(good) == 14
    assert good.items() <= EXPECTED.items()
    failures = {error.type for _, error in rows.values() if error is not None}
    assert failures == {"AttemptTimeoutError"}
