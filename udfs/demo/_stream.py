"""The streaming demo: the flights of each day arrive as one file, and a streaming query enriches them.

A run that was stopped by Ctrl-C or `kill -9` is resumed by the next one.
"""

from __future__ import annotations

import csv
import shutil
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from udfs import summary

from ._data import flights_csv
from ._process import Service
from ._spark import Job, problems_of, read_flights, stream_flights

__all__ = ["Stream"]

DAY_SECONDS: Final = 0.5  # between the arrivals of two days
POLL_SECONDS: Final = 0.2


class Stream:
    """A streaming run in a folder of its own.

    The folder has the `incoming` files, the enriched `flights`, Spark's `checkpoint`, and an empty file `done` after
    a run that completed. The next run then starts afresh.

    Args:
        root: The folder.

    Attributes:
        flights: The folder of the enriched flights.
        is_resumed: Whether an earlier run was stopped, so that this one continues it.
    """

    def __init__(self, root: Path) -> None:
        self._incoming = root / "incoming"
        self._done = root / "done"
        self._checkpoint = root / "checkpoint"
        self.flights = root / "flights"
        if self._done.exists():
            self._done.unlink()
            for folder in (self._incoming, self.flights, self._checkpoint):
                shutil.rmtree(folder)
        self.is_resumed = self._checkpoint.exists()
        self._incoming.mkdir(parents=True, exist_ok=True)

    def run(self, spark: SparkSession, job: Job, service: Service, console: Console, scratch: Path) -> list[str]:
        """Enrich each day as it arrives, to the last one.

        Returns:
            The problems found in the result, as in `problems_of`.
        """
        days = _flights_by_day(flights_csv(scratch), job)
        query = (
            job.enrich(stream_flights(spark, str(self._incoming)), service.url, metrics="flights")
            .writeStream.format("parquet")
            .option("path", str(self.flights))
            .option("checkpointLocation", str(self._checkpoint))
            .start()
        )
        try:
            with self._arrivals(days) as arrivals:
                _watch(query, arrivals, len(days), console)
            query.processAllAvailable()
        finally:
            query.stop()
        before = read_flights(spark, str(self._incoming))
        problems = problems_of(spark, before, self.enriched(spark))
        self._done.touch()
        return problems

    def enriched(self, spark: SparkSession) -> DataFrame:
        """The enriched flights, including those of earlier runs."""
        return spark.read.parquet(str(self.flights))

    @contextmanager
    def _arrivals(self, days: dict[str, list[list[str]]]) -> Iterator[threading.Thread]:
        """A thread that writes the file of one day after another."""
        stopped = threading.Event()

        def write_files() -> None:
            for day, rows in days.items():
                path = self._incoming / f"{day}.csv"
                if not path.exists():
                    _write(path, rows)
                    if stopped.wait(DAY_SECONDS):
                        return

        thread = threading.Thread(target=write_files, name="arrivals", daemon=True)
        thread.start()
        try:
            yield thread
        finally:
            stopped.set()
            thread.join()


def _flights_by_day(path: Path, job: Job) -> dict[str, list[list[str]]]:
    """The lines of each day's file, header included, in the order of the days."""
    with path.open(encoding="utf-8", newline="") as lines:
        reader = csv.reader(lines)
        header = next(reader)
        days = defaultdict(list)
        count = 0
        for row in reader:
            if count == job.rows:
                break
            day = _day(*row[:3])
            if day < job.end:
                days[day.isoformat()].append(row)
                count += 1
    return {day: [header, *days[day]] for day in sorted(days)}


@cache
def _day(year: str, month: str, day: str) -> date:
    return date(int(year), int(month), int(day))


def _write(path: Path, rows: list[list[str]]) -> None:
    partial = path.with_name(f".{path.name}")
    with partial.open("w", encoding="utf-8", newline="") as lines:
        csv.writer(lines).writerows(rows)
    partial.rename(path)  # atomic, so that Spark never reads an incomplete day


def _watch(query: Any, arrivals: threading.Thread, days: int, console: Console) -> None:
    """Print a line for each micro-batch until every day has arrived and has been enriched."""
    columns = (TextColumn("{task.description}"), BarColumn(24), TextColumn("{task.fields[detail]}"))
    last = -1  # the last completed micro-batch. Each has one day
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        task = progress.add_task("days", total=days, detail="")
        while arrivals.is_alive() or last + 1 < days:
            if query.awaitTermination(POLL_SECONDS):  # raises the exception that ended the query
                return
            for report in query.recentProgress:  # several micro-batches may have completed since the last poll
                if report.batchId > last:
                    last = report.batchId
                    _print_micro_batch(report, console)
            progress.update(task, completed=last + 1, detail=f"{last + 1} of {days}")


def _print_micro_batch(report: Any, console: Console) -> None:
    if report.numInputRows:
        seconds = report.batchDuration / 1000
        console.print(f"micro-batch {report.batchId} in {seconds:.1f} s: {summary(report.observedMetrics['flights'])}")
