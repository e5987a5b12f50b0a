"""A Spark action in a thread of its own, with a progress bar."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from ._process import LookupStatistics, Service

__all__ = ["Done", "run"]

T = TypeVar("T")
POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """A completed action.

    Attributes:
        result: What the action returned.
        seconds: How long it took.
        service: The statistics of the service for this action alone.
    """

    result: T
    seconds: float
    service: LookupStatistics


def run(spark: SparkSession, service: Service, console: Console, title: str, action: Callable[[], T]) -> Done[T]:
    """Run the action to completion and show its progress.

    Raises:
        Exception: The action raised it.
    """
    service.reset()
    outcome: list[T] = []
    failure: list[BaseException] = []

    def work() -> None:
        try:
            outcome.append(action())
        except BaseException as error:  # noqa: BLE001 - `run` raises it again
            failure.append(error)

    thread = threading.Thread(target=work, name="spark action", daemon=True)
    started = time.perf_counter()
    thread.start()
    _watch(spark, service, console, title, thread)
    seconds = time.perf_counter() - started
    if failure:
        raise failure[0]
    return Done(outcome[0], seconds, service.stats())


def _watch(spark: SparkSession, service: Service, console: Console, title: str, thread: threading.Thread) -> None:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(24), TextColumn("{task.fields[detail]}"))
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        task = progress.add_task(title, total=1, detail="starting")
        done, total = 0, 1
        while thread.is_alive():
            thread.join(POLL_SECONDS)
            done, total = _partitions(spark) or (done, total)
            stats = service.stats()
            detail = f"{done}/{total} partitions, {stats.requests:,} requests, {stats.in_flight} in flight"
            progress.update(task, completed=done, total=total, detail=detail)
        progress.update(task, completed=total, total=total, detail=f"{service.stats().requests:,} requests")


def _partitions(spark: SparkSession) -> tuple[int, int] | None:
    """The completed tasks of the active stage, and all of its tasks; None between stages."""
    tracker = spark.sparkContext.statusTracker()
    for stage in tracker.getActiveStageIds():
        info = tracker.getStageInfo(stage)
        if info is not None:
            return info.numCompletedTasks, info.numTasks
    return None
