"""The trace of a task: a file of its own in the directory of the user's `TraceRecorder`.

Runs where: in Spark's thread.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from trio_asyncio_io.trace import TraceRecorder

from .._settings import Settings
from .task_log import place_of_task

__all__ = ["with_recorder_of_task", "write_trace"]

logger = logging.getLogger("udfs")


def with_recorder_of_task(settings: Settings) -> Settings:
    """The settings with a new recorder for this task, if their observer is a recorder."""
    observer = settings.options.observer
    if not isinstance(observer, TraceRecorder):
        return settings
    recorder = observer.of_task(f"{settings.function.name}{place_of_task()}")
    return replace(settings, options=replace(settings.options, observer=recorder))


def write_trace(settings: Settings) -> None:
    """Write the file of this task's recorder, if there is one. A task does not fail because of its trace."""
    recorder = settings.options.observer
    if isinstance(recorder, TraceRecorder) and recorder.path is not None:
        try:
            recorder.write(recorder.path)
        except OSError as error:
            logger.warning("the trace of this task was not written: %s", error)
