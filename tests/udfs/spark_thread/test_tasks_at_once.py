"""Several tasks at once in one process, as a later Spark may run them: each in a thread of its own."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from math import inf
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import trio
from pyspark.sql import types as T  # noqa: N812 - the usual name

from tests.support import PATIENCE
from trio_asyncio_io.gates import RateLimit
from udfs import ClusterBudget, HangUpError
from udfs._limits.budgets import BudgetSource
from udfs._limits.cluster_limits import LeasedLimit, ServerAddress
from udfs._memo.directory import Directory
from udfs._plan.memo_layout import memo_schema
from udfs._pyspark_worker import WorkerConnection
from udfs._sent.settings import Enrichment, MemoSettings
from udfs._spark_task import SparkTask
from udfs._spark_thread.bridge import enrich
from udfs._spark_thread.memo_rows import with_answers
from udfs._trio_thread import gates

Task = Callable[[], Any]


class Client:
    """A function with a connection, whose first calls end only when two tasks have made one each."""

    def __init__(self) -> None:
        self.opened = self.closed = 0
        self.seen: set[str] = set()
        self._both = trio.Event()

    async def open(self) -> None:
        self.opened += 1

    async def close(self) -> None:
        self.closed += 1

    async def __call__(self, value: str) -> str:
        self.seen.add(value[0])
        if len(self.seen) == 2:
            self._both.set()
        await self._both.wait()
        return value.upper()


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., list[Future[Any]]]]:
    """Starts tasks in threads of their own, with the numbers 0, 1, ... as their partitions."""
    of_thread = threading.local()
    monkeypatch.setattr(SparkTask, "current", lambda: getattr(of_thread, "task", None))
    monkeypatch.setattr(WorkerConnection, "of_task", lambda: WorkerConnection(of_thread.socket, None))

    def identified(partition: int, connection: socket.socket | None, task: Task) -> Any:
        of_thread.task = SparkTask(7, partition, 0, {}.get)
        of_thread.socket = connection
        return task()

    with ThreadPoolExecutor(2) as pool:

        def start(*tasks: Task, connections: Any = (None, None)) -> list[Future[Any]]:
            return [
                pool.submit(identified, partition, connection, task)
                for partition, (task, connection) in enumerate(zip(tasks, connections, strict=True))
            ]

        yield start


def results_of(*tasks: Future[Any]) -> list[Any]:
    return [task.result(PATIENCE) for task in tasks]


@pytest.fixture
def task(rows: Any) -> Callable[..., Task]:
    """Creates a task with the values a0, a1, ... in two batches; its rows."""

    def make(settings: Any, name: str, number: int = 20) -> Task:
        values = [f"{name}{each}" for each in range(number)]
        batches = [rows(values[: number // 2]), rows(values[number // 2 :], 1)]
        return lambda: [row for chunk in enrich(iter(batches), settings) for row in chunk]

    return make


def test_each_task_keeps_its_rows_and_their_order_and_they_share_one_client(
    run: Any, task: Any, settings: Any, live: Any
) -> None:
    client = Client()
    made = settings(live(client), mode="ordered", capacity=3)
    for name, found in zip("ab", results_of(*run(task(made, "a"), task(made, "b"))), strict=True):
        assert [row.result for row in found] == [f"{name}{each}".upper() for each in range(20)]
    assert (client.opened, client.closed) == (1, 0)


def test_each_task_counts_its_own_rows_and_logs_its_own_line(
    run: Any, task: Any, settings: Any, live: Any, caplog: pytest.LogCaptureFixture
) -> None:
    made = settings(live(Client()), has_metrics=True)
    with caplog.at_level(logging.INFO, "udfs"):
        found = results_of(*run(task(made, "a", 8), task(made, "b", 12)))
    totals = [[row.totals for row in rows if row.totals is not None][-1] for rows in found]
    assert [(each.done, times.tasks) for each, times in totals] == [(8, 1), (12, 1)]
    lines = sorted(message.partition(" in ")[0] for message in caplog.messages)
    assert lines == [
        "Client, stage 7, partition 0, attempt 0: 8 outputs",
        "Client, stage 7, partition 1, attempt 0: 12 outputs",
    ]


def test_a_hang_up_of_one_task_leaves_the_other(run: Any, task: Any, settings: Any, gate: Any, live: Any) -> None:
    one_is_over, third, cancelled = gate(), gate(), []

    async def call(value: str) -> str:
        if value[0] == "b":
            await one_is_over.wait()
            return value
        try:
            if value == "a2":
                await third.wait()
            await trio.sleep_forever()
        finally:
            cancelled.append(value)

    made = settings(live(call), capacity=3)
    ours, sparks = socket.socketpair()
    with ours:
        one, other = run(task(made, "a"), task(made, "b"), connections=[ours, None])
        one_is_over.wait_until_reached()
        third.wait_until_reached()
        sparks.close()
        error = one.exception(PATIENCE)
        cancelled_meanwhile = sorted(cancelled)
        one_is_over.open()
        assert len(other.result(PATIENCE)) == 20
        assert isinstance(error, HangUpError)
        assert cancelled_meanwhile == ["a0", "a1", "a2"]


class Source:
    """Leases a budget from this process."""

    sums = BudgetSource()

    async def open(self) -> None:
        pass

    async def grant(self, request: Any) -> Any:
        await trio.lowlevel.checkpoint()
        return self.sums.grant(trio.current_time(), request)

    async def aclose(self) -> None:
        pass


def test_tasks_share_the_limits_of_their_process(
    run: Any, task: Any, settings: Any, live: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gates, "source_of", lambda leased: Source())
    monkeypatch.setattr(Source, "sums", BudgetSource())
    budget = ClusterBudget(30.0, name="tasks at once")
    limit = LeasedLimit(budget, ServerAddress("driver", 7077, "secret"))
    rate = RateLimit(1e4, burst=10)
    made = settings(live(Client()), gate=rate, limits=(limit,), on_error="column")
    found = results_of(*run(task(made, "a"), task(made, "b")))
    paid = [sum(row.failure is None for row in rows) for rows in found]
    assert [len(rows) for rows in found] == [20, 20]
    assert sum(paid) == 30
    assert min(paid) > 0
    assert Source.sums.leased == 30.0


def test_tasks_share_a_memo_each_with_the_buckets_of_its_partition(
    run: Any, settings: Any, live: Any, memo_task: Any
) -> None:
    calls: list[int] = []
    both = trio.Event()

    async def halve(n: int) -> float:
        calls.append(n)
        if len({each % 2 for each in calls}) == 2:
            both.set()
        await both.wait()
        return n / 2

    made = live(halve)
    for _ in range(2):  # the second time, no call is made
        tasks = [memo_task(made, [n for n in range(40) if n % 2 == partition]) for partition in range(2)]
        found = [sorted((row["n"], row["temp"]) for row in rows) for rows in results_of(*run(*tasks))]
        assert found == [[(n, n / 2) for n in range(40) if n % 2 == partition] for partition in range(2)]
        assert sorted(calls) == list(range(40))


@pytest.fixture
def memo_task(settings: Any, tmp_path: Path) -> Callable[..., Task]:
    """Creates a task with a memo that has one of two partitions; its rows as dictionaries."""
    inputs, added = (T.StructType().add("n", "long"), T.StructType().add("temp", "double"))
    schema = memo_schema("halve", inputs, T.DoubleType(), ("n",))
    Directory(str(tmp_path), schema).claim()

    def make(function: Any, numbers: list[int]) -> Task:
        enrichment = Enrichment(settings(function, mode="unordered"), added, "UTC", inputs=(0,))
        memo = MemoSettings(str(tmp_path), schema, T.DoubleType(), "1", inf, 0.0, 0.0, 2, in_buckets=False)
        batch = pa.RecordBatch.from_pydict({"n": pa.array(numbers), "bucket": pa.array(numbers, pa.int32())})
        return lambda: [row for each in with_answers(enrichment, memo, iter([batch])) for row in each.to_pylist()]

    return make
