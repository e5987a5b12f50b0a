"""The stream: the flights arrive day by day, each day a file, and are enriched as they come.

What is there of an earlier run that was stopped, by Ctrl-C or by `kill -9`, is gone on with.
"""

from __future__ import annotations

import csv
import shutil
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
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

DAY_SECONDS: Final = 0.5
LOOK_SECONDS: Final = 0.2


class Stream:
    """A streaming run in a folder of its own: `incoming` files, `flights` that came out, Spark's `checkpoint`.

    Args:
        root: The folder.
    """

    def __init__(self, root: Path) -> None:
        self._incoming = root / "incoming"
        self._done = root / "done"
        self.flights = root / "flights"
        self.checkpoint = root / "checkpoint"
        if self._done.exists():
            self._done.unlink()
            for folder in (self._incoming, self.flights, self.checkpoint):
                shutil.rmtree(folder)
        self.goes_on = self.checkpoint.exists()
        self._incoming.mkdir(parents=True, exist_ok=True)

    def run(self, spark: SparkSession, job: Job, service: Service, console: Console, scratch: Path) -> list[str]:
        """Enrich every day as it arrives, up to the last; what is wrong with the result, in words."""
        days = _days(flights_csv(scratch), job)
        query = (
            job.enrich(stream_flights(spark, str(self._incoming)), service.url, metrics="flights")
            .writeStream.format("parquet")
            .option("path", str(self.flights))
            .option("checkpointLocation", str(self.checkpoint))
            .start()
        )
        try:
            with self._arriving(days) as arrivals:
                _watch(query, arrivals, len(days), console)
            query.processAllAvailable()
        finally:
            query.stop()
        before = read_flights(spark, str(self._incoming))
        problems = problems_of(spark, before, self.enriched(spark))
        self._done.touch()
        return problems

    def enriched(self, spark: SparkSession) -> DataFrame:
        """The flights that came out, those of earlier runs included."""
        return spark.read.parquet(str(self.flights))

    @contextmanager
    def _arriving(self, days: dict[str, list[list[str]]]) -> Iterator[threading.Thread]:
        stopped = threading.Event()

        def arrive() -> None:
            for day, rows in days.items():
                path = self._incoming / f"{day}.csv"
                if not path.exists():
                    _write(path, rows)
                    if stopped.wait(DAY_SECONDS):
                        return

        thread = threading.Thread(target=arrive, name="arrivals", daemon=True)
        thread.start()
        try:
            yield thread
        finally:
            stopped.set()
            thread.join()


def _days(path: Path, job: Job) -> dict[str, list[list[str]]]:
    """The flights of each day, with the header line."""
    days: dict[str, list[list[str]]] = {}
    with path.open(encoding="utf-8", newline="") as lines:
        reader = csv.reader(lines)
        header = next(reader)
        found = defaultdict(list)
        for count, (year, month, day, *rest) in enumerate(reader):
            if count == job.rows or not (job.full or month == "1"):
                break
            found[f"{year}-{int(month):02}-{int(day):02}"].append([year, month, day, *rest])
    for day in sorted(found):
        days[day] = [header, *found[day]]
    return days


def _write(path: Path, rows: list[list[str]]) -> None:
    partial = path.with_name(f".{path.name}")
    with partial.open("w", encoding="utf-8", newline="") as lines:
        csv.writer(lines).writerows(rows)
    partial.rename(path)  # at once, so that Spark never reads half a day


def _watch(query: Any, arrivals: threading.Thread, days: int, console: Console) -> None:
    """Show what each micro-batch came to, until every day has arrived and has been enriched."""
    columns = (TextColumn("{task.description}"), BarColumn(24), TextColumn("{task.fields[detail]}"))
    seen = -1  # the last micro-batch; each has one day
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        task = progress.add_task("days", total=days, detail="")
        while arrivals.is_alive() or seen + 1 < days:
            if query.awaitTermination(LOOK_SECONDS):  # raises what ended it
                return
            for report in query.recentProgress:  # not only the last: several may have ended since the last look
                if report.batchId > seen:
                    seen = report.batchId
                    _show(report, console)
            progress.update(task, completed=seen + 1, detail=f"{seen + 1} of {days}")


def _show(report: Any, console: Console) -> None:
    if report.numInputRows:
        seconds = report.batchDuration / 1000
        console.print(f"micro-batch {report.batchId} in {seconds:.1f} s: {summary(report.observedMetrics['flights'])}")
