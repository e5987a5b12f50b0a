"""Limits, seen from outside: how many calls run at once, and on how many connections."""

from __future__ import annotations

import os
from typing import Any

import pytest
import trio
from pyspark.sql import DataFrame, SparkSession

from udfs import AsyncFunction, async_pandas_udf, ordered_wait, unordered_wait

TASKS = 2  # at once, in local[2]
ROWS = 80
KINDS = pytest.mark.parametrize("kind", ["column", "ordered", "unordered"])


def answer_only_when_all_ask(service: Any, count: int) -> None:
    """Answer nobody until so many ask at once; then give one more the time to come."""
    enough = trio.Event()

    async def answer(question: str) -> str:
        if service.running >= count:
            await trio.sleep(0.2)
            enough.set()
        await enough.wait()
        return question

    service.answer = answer


def asked(df: DataFrame, kind: str, client: Any, **limits: Any) -> DataFrame:
    """With the service's answer to each row, by the door of this name."""

    async def ask(id: int) -> str:  # noqa: A002 - the column is called so
        return await client.ask(id)

    if kind == "column":
        return df.withColumn("answer", async_pandas_udf(ask, "string", timeout=60.0, **limits)("id"))
    wait = ordered_wait if kind == "ordered" else unordered_wait
    return wait(df, ask, "answer string", timeout=60.0, **limits)


@KINDS
def test_capacity_is_the_most_calls_at_once_in_each_running_task(spark: SparkSession, service: Any, kind: str) -> None:
    """And it is reached, across Arrow batches: a batch holds seven rows."""
    answer_only_when_all_ask(service, 10 * TASKS)
    df = asked(spark.range(0, ROWS, 1, 4), kind, service.client, capacity=10)
    assert df.where("answer = id").count() == ROWS
    assert service.peak_running == 10 * TASKS


@KINDS
def test_cluster_capacity_is_shared_by_the_tasks_that_can_run_at_once(
    spark: SparkSession, service: Any, kind: str
) -> None:
    answer_only_when_all_ask(service, 6)
    df = asked(spark.range(0, ROWS, 1, 4), kind, service.client, cluster_capacity=7)
    assert df.where("answer = id").count() == ROWS
    assert service.peak_running == 6


def test_a_capacity_of_one_makes_one_call_after_the_other(spark: SparkSession, service: Any) -> None:
    df = asked(spark.range(0, 30, 1, 1), "unordered", service.client, capacity=1)
    assert [row.answer for row in df.collect()] == [str(n) for n in range(30)]
    assert service.calls == [str(n) for n in range(30)]
    assert service.peak_running == 1


def test_a_small_buffer_bounds_how_far_calls_run_ahead_of_a_straggler(spark: SparkSession, service: Any) -> None:
    """Ordered: while the first row hangs, as many rows are accepted as the buffer holds, and no more."""
    buffer = 12

    async def answer(question: str) -> str:
        if question == "0":
            await service.until(lambda: len(service.calls) >= buffer)
            await trio.sleep(0.2)  # the time for one more
            ahead.append(len(service.calls))
        return question

    ahead: list[int] = []
    service.answer = answer
    df = asked(spark.range(0, ROWS, 1, 1), "ordered", service.client, capacity=4, buffer=buffer)
    assert [row.answer for row in df.collect()] == [str(n) for n in range(ROWS)]
    assert ahead == [buffer]


class Connected(AsyncFunction[int, int]):
    """Opens one connection, asks over it, and gives the process in which that happened."""

    def __init__(self, client: Any) -> None:
        self.client = client

    async def open(self) -> None:
        self.stream = await self.client.connect()
        self.turn = trio.Lock()

    async def invoke(self, id: int) -> int:  # noqa: A002 - the column is called so
        async with self.turn:
            await self.client.ask_on(self.stream, id)
        return os.getpid()

    async def close(self) -> None:
        await self.stream.aclose()


def test_a_client_is_opened_once_per_worker_process_and_outlives_tasks_and_jobs(
    spark: SparkSession, service: Any
) -> None:
    processes: list[int] = []
    jobs = 8
    for _ in range(jobs):
        df = ordered_wait(spark.range(0, 10, 1, 2), Connected(service.client), "process long", timeout=30.0)
        processes += {row.process for row in df.collect()}
    assert len(service.calls) == 10 * jobs
    assert service.connections == len(set(processes))
    assert len(set(processes)) < len(processes)
    assert service.connected == service.connections  # none was closed in between
