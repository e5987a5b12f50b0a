"""A progress line for Spark's tasks and micro-batches in a terminal or a notebook.

It needs rich, which the extra `progress` installs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from trio_asyncio_io.integration import display_on, duration

from ._extras import needs_extra

with needs_extra(__name__, "spark,progress"):
    from pyspark.sql import SparkSession

    from ._plan.job_watch import TaskCounts, watch_on

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["progress"]

CLOSE_SECONDS = 5.0  # time limit of the last query for progress


@contextmanager
def progress(
    session: SparkSession | None = None, *, description: str = "", console: Console | None = None
) -> Iterator[None]:
    """Show the progress of the block's Spark jobs: their tasks, and the micro-batches of streaming queries.

    In a terminal or a notebook, one line is updated in place. In a file or a CI log, a new line is written every 30
    seconds. The last line remains after the block, even if it raises. Works in classic and in remote sessions. A remote
    session reports only the completed tasks of batch queries, not running or failed ones.

    For each streaming query the line describes the last completed micro-batch. If the query has `metrics=`, it includes
    their summary, as in `udfs.summary`.

    Runs where: on the driver, in a thread that polls Spark a few times per second and ends with the block. All jobs of
    the application that run during the block are counted.

    Args:
        session: The session; None: the active one.
        description: Text before the counts, empty by default.
        console: A rich console; None: one on standard error. If Spark's own progress bar is on the same terminal,
            disable it: `spark.ui.showConsoleProgress` = false.

    Raises:
        ImportError: rich is not installed.
        RuntimeError: No session is active.

    Example:
        with progress(description="weather"):
            ordered_wait(flights, weather, "temp double", timeout=5.0).write.parquet("enriched")
    """
    session = session or SparkSession.active()
    watch = watch_on(session)
    display = display_on(console)
    started = time.monotonic()
    counts = TaskCounts()
    ended = threading.Event()
    prefix = f"{description}: " if description else ""

    def show() -> None:
        nonlocal counts
        while not ended.wait(display.interval):
            counts = watch.counts()
            elapsed = timedelta(seconds=round(time.monotonic() - started))
            line = "  ".join([*counts.tasks(), str(elapsed), *counts.streams])
            display.show(prefix + line)
        counts = watch.counts()

    thread = threading.Thread(target=show, name="udfs-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(CLOSE_SECONDS)
        watch.close()
        line = f"{', '.join(counts.tasks())} in {duration(time.monotonic() - started)}"
        display.close(prefix + "; ".join([line, *counts.streams]))
