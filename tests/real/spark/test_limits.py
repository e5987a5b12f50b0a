"""Limits as the service sees them: how many calls run at once, and over how many connections."""

from __future__ import annotations

import os

import trio
from pyspark.sql import SparkSession

from tests.entry_points import COLUMN_AND_ROWS, with_answer
from tests.service import Client, Service
from tests.support import PATIENCE
from udfs import AsyncFunction, ordered_wait

TASKS = 2  # at once, in local[2]
ROWS = 80


def answer_only_when_all_run(service: Service, count: int) -> None:
    """Answer no call until this many run at once, and then only after there was time for another one."""
    enough = trio.Event()

    async def answer(question: str) -> str:
        if service.running >= count:
            await trio.sleep(0.2)
            enough.set()
        await enough.wait()
        return question

    service.answer = answer


@COLUMN_AND_ROWS
def test_each_running_task_makes_exactly_capacity_calls_at_once(
    spark: SparkSession, service: Service, entry_point: str
) -> None:
    """Across Arrow batches, which hold seven rows each."""
    answer_only_when_all_run(service, 10 * TASKS)
    df = with_answer(spark.range(0, ROWS, 1, 4), entry_point, service.client.ask, capacity=10)
    assert df.where("answer = id").count() == ROWS
    assert service.peak_running == 10 * TASKS


@COLUMN_AND_ROWS
def test_tasks_that_can_run_at_once_share_the_cluster_capacity(
    spark: SparkSession, service: Service, entry_point: str
) -> None:
    answer_only_when_all_run(service, 6)
    df = with_answer(spark.range(0, ROWS, 1, 4), entry_point, service.client.ask, cluster_capacity=7)
    assert df.where("answer = id").count() == ROWS
    assert service.peak_running == 6


class Connected(AsyncFunction[int, int]):
    """Opens one connection, calls the service over it, and returns the id of its process."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def open(self) -> None:
        self.stream = await self.client.connect()
        self.lock = trio.Lock()

    async def invoke(self, id: int) -> int:  # noqa: A002 - the name of the column
        async with self.lock:
            await self.client.ask_on(self.stream, id)
        return os.getpid()

    async def close(self) -> None:
        await self.stream.aclose()


def test_a_client_is_opened_once_per_worker_process_and_outlives_tasks_and_jobs(
    spark: SparkSession, service: Service
) -> None:
    processes: list[int] = []
    jobs = 4
    for _ in range(jobs):
        df = ordered_wait(spark.range(0, 10, 1, 2), Connected(service.client), "process long", timeout=PATIENCE)
        processes += {row.process for row in df.collect()}
    assert len(service.calls) == 10 * jobs
    assert service.connections == len(set(processes))
    assert len(set(processes)) < len(processes)
    assert service.connected == service.connections  # none was closed in the meantime
