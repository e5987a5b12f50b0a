"""The file of a task: what the user's `TraceRecorder` or `report` has collected of it, in a file of its own.

Runs where: in Spark's thread.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from trio_asyncio_io.report import Report
from trio_asyncio_io.trace import TraceRecorder

from .._sent.settings import Settings
from .task_log import place_of_task

__all__ = ["with_observer_of_task", "write_file_of_task"]

logger = logging.getLogger("udfs")


def with_observer_of_task(settings: Settings) -> Settings:
    """The settings with a new recorder or report for this task, if their observer is one."""
    observer = settings.options.observer
    if not isinstance(observer, TraceRecorder | Report):
        return settings
    of_task = observer.of_task(f"{settings.function.name}{place_of_task()}")
    return replace(settings, options=replace(settings.options, observer=of_task))


def write_file_of_task(settings: Settings) -> None:
    """Write the file of this task, if there is one. A task does not fail because of it."""
    observer = settings.options.observer
    try:
        if isinstance(observer, TraceRecorder) and observer.path is not None:
            observer.write(observer.path)
        elif isinstance(observer, Report):
            observer.write_part()
    except OSError as error:
        logger.warning("a file of this task was not written: %s", error)
