"""What a task leaves behind: a line in the log, and the file of the user's `TraceRecorder` or `report`.

Runs where: in Spark's thread.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from dataclasses import replace

from trio_asyncio_io import Statistics
from trio_asyncio_io.integration import TaskTimes
from trio_asyncio_io.progress import summary
from trio_asyncio_io.report import Report
from trio_asyncio_io.trace import TraceRecorder

from .._sent.row import inputs_of
from .._sent.settings import Settings
from .._spark_task import SparkTask

LEVEL = "UDFS_LOG_LEVEL"
IN_SPARKS_LOG = "PYSPARK_SPARK_SESSION_UUID"  # Spark sets it in workers whose logging it collects

logger = logging.getLogger("udfs")

_configuring = threading.Lock()  # the first two tasks of a process may begin at once


class TaskLog:
    """Logs one line at level INFO of the logger `udfs` when the task ends. Create it when the task starts.

    A worker process configures no logging itself. The line goes to standard error if the environment variable
    `UDFS_LOG_LEVEL` is set to INFO or lower, and to Spark's log of the workers if that is enabled
    (`spark.sql.pyspark.worker.logging.enabled`, since Spark 4.1).

    Args:
        name: The name of the function.
    """

    def __init__(self, name: str) -> None:
        with _configuring:
            _ensure_level()
        self._name = name_of_task(name)
        self._started = time.monotonic()

    def write(self, statistics: Statistics, calls: int) -> None:
        """Log the line.

        Args:
            statistics: The statistics of the operator.
            calls: The number of calls of the function.
        """
        seconds = time.monotonic() - self._started
        cancelled, peak = statistics.cancelled, statistics.peak_running
        text = f"{summary(statistics, seconds)}, {cancelled:,} cancelled, at most {peak:,} at once, {calls:,} calls"
        logger.info("%s: %s", self._name, text)


def name_of_task(function: str) -> str:
    """The name of the function and, in a task, the numbers that Spark gives to it."""
    task = SparkTask.current()
    return function if task is None else f"{function}, {task}"


def _ensure_level() -> None:
    """Set the level of this process's logger from the environment, once. INFO in place of an unknown one."""
    level = os.environ.get(LEVEL, "INFO" if IN_SPARKS_LOG in os.environ else "").upper()
    if not level or logger.level:
        return
    logger.setLevel(logging.getLevelNamesMapping().get(level, logging.INFO))
    if IN_SPARKS_LOG not in os.environ:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        logger.addHandler(handler)


def with_observer_of_task(settings: Settings) -> Settings:
    """The settings with a new recorder or report for this task, if their observer is one."""
    observer = settings.options.observer
    if not isinstance(observer, TraceRecorder | Report):
        return settings
    name = name_of_task(settings.function.name)
    of_task = observer.of_task(name, inputs_of) if isinstance(observer, Report) else observer.of_task(name)
    return replace(settings, options=replace(settings.options, observer=of_task))


def write_file_of_task(settings: Settings, times: TaskTimes) -> None:
    """Write the file of this task, if there is one. A task does not fail because of it."""
    observer = settings.options.observer
    try:
        if isinstance(observer, TraceRecorder) and observer.path is not None:
            observer.write(observer.path)
        elif isinstance(observer, Report):
            observer.write_part(times)
    except OSError as error:
        logger.warning("a file of this task was not written: %s", error)
