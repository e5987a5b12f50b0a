"""Every way to make and to wrap a function, in a column and in whole rows: what the operator has, Spark has."""

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
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

from trio_asyncio_io.adapters import ResultFuture, from_asyncio, from_callback, from_future, in_thread
from trio_asyncio_io.policies import cached, grouped, persistent, single_flight
from udfs import (
    AsyncFunction,
    DelayList,
    FixedDelay,
    RetryBudget,
    async_pandas_udf,
    keyed_wait,
    ordered_wait,
    unordered_wait,
)

ROWS = 60
DOORS = ["column", "ordered", "unordered", "keyed"]


def answered(df: DataFrame, door: str, function: Any, **options: Any) -> dict[int, Any]:
    """id -> answer, by the door of this name; the answer is a string."""
    options = {"timeout": 30.0, "capacity": 20, **options}
    if door == "column":
        out = df.select("id", async_pandas_udf(function, "string", **options)("id").alias("answer"))
        if options.get("on_error") == "column":
            out = out.select("id", "answer.result", "answer.error").withColumnRenamed("result", "answer")
    elif door == "keyed":
        out = keyed_wait(df, function, "answer string", inputs=["id"], key="id", **options)
    else:
        wait = ordered_wait if door == "ordered" else unordered_wait
        out = wait(df, function, "answer string", inputs=["id"], **options)
    rows = out.collect()
    assert len(rows) == df.count()
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
    """Gives futures; its threads are made in the worker."""

    def __call__(self, number: int) -> Any:
        if not hasattr(self, "threads"):
            self.threads = ThreadPoolExecutor(4)
        return self.threads.submit(blocking, number)


def call_back(number: int, result_future: ResultFuture[str]) -> None:
    Thread(target=lambda: result_future.complete(blocking(number))).start()


async def many(numbers: list[int]) -> list[str]:
    await trio.sleep(0.001)
    return [f"<{number}>" for number in numbers]


async def one(number: int) -> str:
    await trio.sleep(0.001)
    return f"<{number}>"


class Opened(AsyncFunction[int, str]):
    """Answers only between `open` and `close`."""

    async def open(self) -> None:
        self.mark = "<%d>"

    async def invoke(self, number: int) -> str:  # type: ignore[override]
        return self.mark % number


FUNCTIONS = {
    "in_thread": in_thread(blocking),
    "from_asyncio": from_asyncio(of_asyncio),
    "from_future": from_future(Pool()),
    "from_callback": from_callback(call_back),
    "grouped": grouped(many, size=7, age=0.5),
    "cached and shared groups": cached(single_flight(grouped(many, size=7, age=0.01))),
    "cached and shared": cached(single_flight(Opened())),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("door", ["column", "unordered"])
def test_every_kind_of_function_serves_columns_and_rows(numbers: DataFrame, door: str, name: str) -> None:
    assert answered(numbers, door, FUNCTIONS[name]) == EXPECTED


@pytest.mark.parametrize("door", DOORS)
def test_rows_are_sent_in_groups_and_the_last_does_not_wait_for_its_age(
    numbers: DataFrame, door: str, service: Any
) -> None:
    client = service.client

    async def ask_many(ids: list[int]) -> list[str]:
        await client.ask(",".join(map(str, ids)))
        return [f"<{each}>" for each in ids]

    assert answered(numbers, door, grouped(ask_many, size=20, age=3600.0)) == EXPECTED
    sizes = sorted(len(call.split(",")) for call in service.calls)
    assert sizes == [10, 10, 20, 20]  # a partition has thirty


def test_a_group_of_several_columns_is_a_list_of_tuples(numbers: DataFrame) -> None:
    async def add_many(pairs: list[tuple[int, int]]) -> list[int | Exception]:
        return [a + b if a != 3 else ValueError("three") for a, b in pairs]

    df = numbers.withColumn("ten", F.lit(10))
    out = unordered_wait(
        df, grouped(add_many, size=5), "sum long", inputs=["id", "ten"], timeout=30.0, on_error="column"
    )
    rows = {row.id: (row["sum"], row.error and row.error.message) for row in out.collect()}
    assert rows == {n: (n + 10, None) if n != 3 else (None, "three") for n in range(ROWS)}


@pytest.mark.parametrize("door", DOORS)
def test_what_an_earlier_job_has_paid_for_is_not_asked_again(
    numbers: DataFrame, door: str, service: Any, tmp_path: Path
) -> None:
    """Two tasks write one file, in two processes; the second job is another application's, for all that it knows."""
    client = service.client

    async def ask(id: int) -> str:  # noqa: A002 - the column is called so
        return f"<{await client.ask(id)}>"

    for name in ("first job", "second job"):
        lookup = persistent(ask, tmp_path / "answers.sqlite", name="ask")
        assert answered(numbers.withColumn("job", F.lit(name)), door, lookup) == EXPECTED
    assert sorted(map(int, service.calls)) == list(range(ROWS))


@pytest.mark.parametrize("door", DOORS)
def test_rows_that_ask_the_same_at_once_share_one_call(spark: SparkSession, door: str, service: Any) -> None:
    client = service.client

    async def ask(_: int) -> str:
        return await client.ask("the one question")

    async def answer(question: str) -> str:
        await trio.sleep(0.2)
        return question

    service.answer = answer
    df = spark.range(0, 20, 1, 1)
    lookup = single_flight(ask, key=lambda _: "the one key")
    options = {"on_error": "null"}
    assert set(answered(df, door, lookup, **options).values()) == {"the one question"}
    assert len(service.calls) == 1


@pytest.mark.parametrize("door", DOORS)
def test_a_list_of_delays_attempt_timeouts_and_a_budget_hold(numbers: DataFrame, door: str, service: Any) -> None:
    """The first attempt of each row hangs; a budget for seven retries in each of two tasks."""
    client = service.client

    async def ask(id: int) -> str:  # noqa: A002 - the column is called so
        return await client.ask(id)

    async def answer(question: str) -> str:
        if service.calls.count(question) == 1:
            await trio.sleep_forever()
        return f"<{question}>"

    service.answer = answer
    retry = DelayList([0.0, 0.0], attempt_timeout=0.5, budget=RetryBudget(ratio=0.0, reserve=7))
    rows = answered(numbers, door, ask, retry=retry, on_error="column", capacity=30)
    good = {id: answer for id, (answer, error) in rows.items() if error is None}  # noqa: A001 - the column is called so
    assert len(good) == 14
    assert good.items() <= EXPECTED.items()
    failures = {error.type for _, error in rows.values() if error is not None}
    assert failures == {"AttemptTimeoutError"}


@pytest.mark.parametrize("door", DOORS)
def test_a_service_that_says_when_to_come_again_is_not_asked_before(
    spark: SparkSession, door: str, service: Any
) -> None:
    client = service.client

    class Busy(Exception):  # noqa: N818 - reads as what it is
        retry_after = 0.4

    async def ask(id: int) -> str:  # noqa: A002 - the column is called so
        answer = await client.ask(f"{id} {time.monotonic()}")
        if answer == "busy":
            raise Busy
        return f"<{id}>"

    async def answer(question: str) -> str:
        again = sum(call.split()[0] == question.split(maxsplit=1)[0] for call in service.calls)
        return "busy" if again == 1 else "here"

    service.answer = answer
    answered(spark.range(0, 3, 1, 1), door, ask, retry=FixedDelay(1, 0.0))
    asked: dict[str, list[float]] = {}
    for call in service.calls:
        number, instant = call.split()
        asked.setdefault(number, []).append(float(instant))
    assert all(second - first >= 0.4 for first, second in asked.values())
