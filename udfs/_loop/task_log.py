"""The task log: one line for each task, which says what its calls came to."""

from __future__ import annotations

import logging
import os
import sys
import time

from pyspark import TaskContext

from trio_asyncio_io import Statistics
from trio_asyncio_io.progress import summary

__all__ = ["TaskLog"]

LEVEL = "UDFS_LOG_LEVEL"
IN_SPARKS_LOG = "PYSPARK_SPARK_SESSION_UUID"  # set by Spark in workers whose logging it gathers

logger = logging.getLogger("udfs")


class TaskLog:
    """What is logged of one task, at level INFO of the logger `udfs`; made when the task begins.

    A worker process has no logging of its own. The line goes to standard error where the environment's
    `UDFS_LOG_LEVEL` says so, and into Spark's own log of the workers where this is on
    (`spark.sql.pyspark.worker.logging.enabled`, Spark 4.1); else nowhere.

    Runs where: in Spark's thread.

    Args:
        name: The function's.
    """

    def __init__(self, name: str) -> None:
        _ensure_level()
        self._name = name
        self._place = _place()
        self._began = time.monotonic()

    def write(self, statistics: Statistics, calls: int) -> None:
        """Log what the task did.

        Args:
            statistics: The operator's.
            calls: How often the function was called.
        """
        seconds = time.monotonic() - self._began
        cancelled, peak = statistics.cancelled, statistics.peak_running
        text = f"{summary(statistics, seconds)}, {cancelled:,} cancelled, at most {peak:,} at once, {calls:,} calls"
        logger.info("%s%s: %s", self._name, self._place, text)


def _place() -> str:
    """Which task this is, as Spark numbers them; nothing outside of one."""
    context = TaskContext.get()
    if context is None:
        return ""
    batch = context.getLocalProperty("streaming.sql.batchId")
    micro_batch = "" if batch is None else f"micro-batch {batch}, "
    stage, partition, attempt = context.stageId(), context.partitionId(), context.attemptNumber()
    return f", {micro_batch}stage {stage}, partition {partition}, attempt {attempt}"


def _ensure_level() -> None:
    """Give the logger of this process the level that was asked for, once."""
    level = os.environ.get(LEVEL, "INFO" if IN_SPARKS_LOG in os.environ else "").upper()
    if not level or logger.level:
        return
    known = logging.getLevelNamesMapping()
    logger.setLevel(known.get(level, logging.INFO))
    if level not in known:
        logger.warning("%s must be one of %s, got %r: taken for INFO", LEVEL, ", ".join(known), level)
    if IN_SPARKS_LOG not in os.environ:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        logger.addHandler(handler)
