"""Progress: the tasks and micro-batches of a Spark session, for people in a terminal or a notebook.

It needs rich, which the extra `progress` brings.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from trio_asyncio_io.progress import clock, display_on

from ._plan.job_watch import Numbers, watch_on
from ._plan.session import active_session

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["progress"]

PATIENCE = 5.0  # seconds that the last look may take


@contextmanager
def progress(
    session: SparkSession | None = None, *, description: str = "", console: Console | None = None
) -> Iterator[None]:
    """A line that shows how far Spark is with what runs in the block: its tasks, and the micro-batches of its streams.

    In a terminal and in a notebook (with ipywidgets) the line changes in its place; elsewhere, in a file or a CI log,
    there is a line every 30 seconds. At the end, however it came, one line remains. Works in a classic and in a remote
    session; a remote one tells of the tasks of its batch queries that are done, and not of those that run or failed.

    The micro-batch is the last one that was done, of each query that runs. Where the query has `metrics=`, what
    its calls came to stands there, as `udfs.summary` has it.

    Runs where: on the driver, in a thread that looks a few times a second and ends with the block. All jobs of the
    session's application count that run meanwhile, whoever started them.

    Args:
        session: None: the active one.
        description: Stands before the numbers.
        console: A rich console. None: one on standard error, so that standard output stays yours. Turn Spark's own
            bar off where both are on one terminal: `spark.ui.showConsoleProgress` = false.

    Raises:
        ImportError: rich is not installed.
        RuntimeError: There is no session.

    Example:
        with progress(description="weather"):
            ordered_wait(flights, weather, "temp double", timeout=5.0).write.parquet("enriched")
    """
    watch = watch_on(session or active_session())
    display = display_on(console)
    began = time.monotonic()
    numbers = Numbers()
    over = threading.Event()
    prefix = f"{description}: " if description else ""

    def show() -> None:
        nonlocal numbers
        while not over.wait(display.interval):
            numbers = watch.look()
            line = "  ".join([*numbers.tasks(), clock(time.monotonic() - began), *numbers.streams])
            display.show(prefix + line, numbers.done, numbers.total or None)
        numbers = watch.look()

    thread = threading.Thread(target=show, name="udfs-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(PATIENCE)
        watch.close()
        line = f"{', '.join(numbers.tasks())} in {time.monotonic() - began:,.1f} s"
        display.close(prefix + "; ".join([line, *numbers.streams]))
