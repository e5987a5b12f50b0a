"""The run: a Spark action in a thread of its own, and a watch that shows how far it is."""

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
LOOK_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """What an action gave, how long it took, in seconds, and what the service saw of it."""

    result: T
    seconds: float
    service: LookupStatistics


def run(spark: SparkSession, service: Service, console: Console, title: str, action: Callable[[], T]) -> Done[T]:
    """Run the action to its end and show how far it is.

    Raises:
        Exception: The action's own.
    """
    service.reset()
    outcome: list[T] = []
    failure: list[BaseException] = []

    def work() -> None:
        try:
            outcome.append(action())
        except BaseException as error:  # noqa: BLE001 - raised again by the watch
            failure.append(error)

    thread = threading.Thread(target=work, name="spark action", daemon=True)
    began = time.perf_counter()
    thread.start()
    _watch(spark, service, console, title, thread)
    seconds = time.perf_counter() - began
    if failure:
        raise failure[0]
    return Done(outcome[0], seconds, service.stats())


def _watch(spark: SparkSession, service: Service, console: Console, title: str, thread: threading.Thread) -> None:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(24), TextColumn("{task.fields[detail]}"))
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        task = progress.add_task(title, total=1, detail="starting")
        done, total = 0, 1
        while thread.is_alive():
            thread.join(LOOK_SECONDS)
            done, total = _partitions(spark) or (done, total)
            seen = service.stats()
            detail = f"{done}/{total} partitions, {seen.requests:,} requests, {seen.in_flight} in flight"
            progress.update(task, completed=done, total=total, detail=detail)
        progress.update(task, completed=total, total=total, detail=f"{service.stats().requests:,} requests")


def _partitions(spark: SparkSession) -> tuple[int, int] | None:
    """The tasks that are done, and all, of the stage that runs; None between stages."""
    tracker = spark.sparkContext.statusTracker()
    for stage in tracker.getActiveStageIds():
        info = tracker.getStageInfo(stage)
        if info is not None:
            return info.numCompletedTasks, info.numTasks
    return None
