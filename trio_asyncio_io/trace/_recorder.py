"""The recorder: an observer that records what each slot does, and when."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import partial
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import trio

from .._core.checks import check_int
from .._core.describe import describe
from .._core.elements import Watermark, value_of
from .._core.observer import Observer
from ._events import Run, trace_of
from ._file import Trace, write
from ._sample import Sample
from ._steps import Kind, RecordSteps, WatermarkSteps

__all__ = ["TraceRecorder"]


class TraceRecorder(Observer):
    """An observer that records a run of one operator, for Perfetto and for `timeline`.

    The trace has a track for each slot, with a span for each invocation, and spans inside it for attempts, backoffs and
    handlers. Spans beside them show how long a record waited for a slot, for its place in the output order, and for the
    consumer; and watermarks. Times are relative to the first element, on Trio's clock.

    Memory is bounded: when more than `max_records` records have been recorded, every second one of them is dropped, and
    from then on only every second (then fourth, eighth, ...) record is recorded. A record is recorded with all its
    steps or not at all, except for attempts and backoffs after the fortieth. Watermarks have the same limit, for
    themselves. The file contains how many were left out. Slots are numbered from those records that are in the trace.

    As a context manager, it writes the file at the end of the block, however the block ends. Put the operator's block
    inside it. In Spark, give it to `observer=`, without a block: each task writes a file of its own.

    Args:
        path: The file to write. In Spark a directory, which is created if necessary. None: call `write`.
        name: The name of the operator in the trace.
        every: Record every n-th record from the start, at least 1.
        max_records: Upper limit of records in the trace, at least 1.
        values: Whether to record descriptions of values and timestamps. They may be secret, so the default is False.
            Exceptions are recorded by their type only, in any case.

    Raises:
        TypeError, ValueError: An argument is invalid. The message names it and its value.

    Example:
        with TraceRecorder("run.json") as recorder:
            async with ordered_wait(words, look_up, timeout=5.0, observer=recorder) as results:
                ...
    """

    def __init__(
        self,
        path: str | PathLike[str] | None = None,
        *,
        name: str = "operator",
        every: int = 1,
        max_records: int = 5_000,
        values: bool = False,
    ) -> None:
        check_int("every", every, at_least=1)
        check_int("max_records", max_records, at_least=1)
        self.path = None if path is None else Path(path)
        self._create_copy = partial(type(self), name=name, every=every, max_records=max_records, values=values)
        self._values = values
        self._run = Run(name, Sample(every, max_records), Sample(every, max_records))
        self._reads_wall_clock = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.path is not None:
            self.write(self.path)

    def __reduce__(self) -> tuple[Callable[..., TraceRecorder], tuple[Path | None]]:
        # What was recorded stays here. On another machine, a relative path would be below another directory
        return self._create_copy, (self.path and self.path.absolute(),)

    def of_task(self, name: str) -> TraceRecorder:
        """A new recorder like this one, for one of many tasks that run in several processes.

        It writes a new file in the directory `path`, which `merge` can place in time.

        Args:
            name: The name of the task in the trace, and the beginning of the file's name.

        Raises:
            ValueError: This recorder has no path.
        """
        if self.path is None:
            raise ValueError('give the recorder a directory for the files of the tasks: TraceRecorder("traces")')
        slug = re.sub(r"[^\w-]+", "-", name).strip("-")
        copy = self._create_copy(self.path / f"{slug}-{uuid4().hex[:8]}.json")
        copy._run.name = name  # noqa: SLF001 - of this class
        copy._reads_wall_clock = True  # noqa: SLF001
        return copy

    def trace(self) -> Trace:
        """The trace so far, as an object in Chrome's Trace Event Format."""
        return trace_of(self._run)

    def write(self, path: str | PathLike[str]) -> None:
        """Write the trace so far to a file, as JSON. The file is replaced as a whole.

        Raises:
            OSError: The file cannot be written.
        """
        write(self.trace(), path)

    # The hooks of a record

    def accepted(self, sequence: int, element: Any) -> None:
        now = self._element_now(sequence)
        value = self._text_of(value_of(element))
        self._run.records.offer(sequence, lambda: RecordSteps.accepted_at(now, sequence, value))

    def held_back(self, sequence: int, element: Any) -> None:
        self._begin(sequence, "wait for a gate")

    def waits_for_slot(self, sequence: int, element: Any) -> None:
        self._begin(sequence, "wait for a slot")

    def started(self, sequence: int, element: Any) -> None:
        record = self._step(sequence)
        if record is not None:
            record.started = self._run.last
            record.enter_slot(self._run.last)

    def attempt_failed(self, sequence: int, element: Any, attempt: int, error: Exception) -> None:
        record = self._step(sequence)
        if record is not None:
            record.end(self._run.last, "failed", type(error).__name__)

    def backing_off(self, sequence: int, element: Any, attempt: int, seconds: float) -> None:
        record = self._step(sequence)
        if record is not None:
            now = self._run.last
            record.end(now, "gave a result that is retried")
            record.leave_slot(now)
            record.begin("backoff", "backoff", now)

    def retried(self, sequence: int, element: Any, attempt: int) -> None:
        record = self._step(sequence)
        if record is not None:
            record.enter_slot(self._run.last)

    def timed_out(self, sequence: int, element: Any, attempts: int, seconds: float) -> None:
        record = self._step(sequence)
        if record is not None:
            now = self._run.last
            record.end(now, "timed out")
            record.outcome = "timed out"
            record.begin("handler", "on_timeout", now)

    def completed(self, sequence: int, element: Any, attempts: int, seconds: float) -> None:
        self._end(sequence, "completed")

    def failed(self, sequence: int, element: Any, attempts: int, seconds: float, error: Exception) -> None:
        record = self._end(sequence, "failed", type(error).__name__)
        if record is not None:
            record.begin("handler", "on_error", self._run.last)

    def cancelled(self, sequence: int, element: Any, attempts: int, seconds: float) -> None:
        self._end(sequence, "cancelled")

    def slot_freed(self, sequence: int, element: Any) -> None:
        record = self._step(sequence)
        if record is not None:
            record.freed = self._run.last
            record.leave_slot(record.freed)

    def dequeued(self, sequence: int, element: Any) -> None:
        record = self._step(sequence)
        if record is not None:
            record.dequeued = self._run.last

    def emitted(self, sequence: int, element: Any) -> None:
        record = self._step(sequence)
        if record is not None:
            record.received = self._run.last
            record.outputs += 1

    # The hooks of a watermark

    def watermark_accepted(self, sequence: int, watermark: Watermark) -> None:
        now = self._element_now(sequence)
        timestamp = self._text_of(watermark.timestamp)
        self._run.watermarks.offer(sequence, lambda: WatermarkSteps(sequence, timestamp, now))

    def watermark_emitted(self, sequence: int, watermark: Watermark) -> None:
        now = self._now()
        steps = self._run.watermarks.get(sequence)
        if steps is not None:
            steps.received = now

    def _begin(self, sequence: int, kind: Kind) -> None:
        record = self._step(sequence)
        if record is not None:
            record.begin(kind, kind, self._run.last)

    def _end(self, sequence: int, outcome: str, error: str = "") -> RecordSteps | None:
        """End the present span. The first outcome counts: after a timeout, a failure of the handler is not another."""
        record = self._step(sequence)
        if record is not None:
            record.end(self._run.last, "" if outcome == "completed" else outcome, error)
            record.outcome = record.outcome or outcome
        return record

    def _step(self, sequence: int) -> RecordSteps | None:
        """The record, if it is recorded. Sets the time, which costs more than the rest."""
        record = self._run.records.get(sequence)
        if record is not None:
            self._run.last = trio.current_time()
        return record

    def _text_of(self, value: object) -> str | None:
        if not self._values:
            return None
        return describe(value).strip("'") if isinstance(value, str) else describe(value)

    def _now(self) -> float:
        self._run.last = trio.current_time()
        return self._run.last

    def _element_now(self, sequence: int) -> float:
        run = self._run
        if sequence != run.records.offered + run.watermarks.offered:
            raise RuntimeError("a TraceRecorder records one run of one operator: create a new one for each run")
        now = self._now()
        if sequence == 0:
            run.zero = now
            run.began = time.time() if self._reads_wall_clock else None
        return now
