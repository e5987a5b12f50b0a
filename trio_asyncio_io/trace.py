"""Records a run as a file for Perfetto."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import trio

from ._core.elements import Watermark
from ._core.gate import Gate
from ._core.options import Options
from ._values.checks import check_int, check_name, check_path
from ._watch.events import Recording, Trace, trace_of
from ._watch.recorder import Recorder, path_of_part, replace_file
from ._watch.steps import GroupCall, RecordSteps, SystematicSample, WatermarkSteps

__all__ = ["TraceRecorder"]


class TraceRecorder(Recorder):
    """An observer that records a run of one operator, for Perfetto.

    The trace has a track for each slot, with a span for each stay of a record in it, and inside it spans for the
    attempt and handlers. Spans beside them show backoffs, and how long a record waited for a slot, for a gate, for its
    place in the output order, and for the consumer; and watermarks. `otherData` has what `capacity="auto"` found. Times
    are relative to the start of the run, on Trio's clock.

    Memory is bounded: when more than `max_records` records have been recorded, every second one of them is dropped, and
    from then on only every second (then fourth, eighth, ...) record is recorded. A record is recorded with all its
    steps or not at all, except for attempts and backoffs after the fortieth. Watermarks have the same limit, for
    themselves. The file contains how many were left out. Slots are numbered from those records that are in the trace.

    As a context manager, it writes the file at the end of the block, however the block ends. Put the operator's block
    inside it. In Spark, give it to `observer=`, without a block: each task writes a file of its own.

    Args:
        path: The file to write. In Spark a directory, which is created if necessary. A `~` at its beginning is the home
            directory. None: call `write`.
        name: The name of the operator in the trace, not empty.
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
        max_records: int = 5_000,
        values: bool = False,
    ) -> None:
        check_int("max_records", max_records, at_least=1)
        create_copy = partial(type(self), name=name, max_records=max_records, values=values)
        super().__init__(path, check_name("name", name), values=values, create_copy=create_copy)
        self._recording = Recording(self._name, SystematicSample(max_records), SystematicSample(max_records))
        self._has_run = False
        self._gates: list[Gate] = []
        self._group_calls: dict[int, GroupCall] = {}  # sequence -> the call of a record that has or gets a slot

    def _finish(self, error: BaseException | None) -> None:
        if self.path is not None:
            self.write(self.path)

    def of_task(self, name: str) -> TraceRecorder:
        """A new recorder like this one, for one of many tasks that run in several processes.

        It writes a new file in the directory `path`.

        Args:
            name: The name of the task in the trace, and the beginning of the file's name.
        """
        assert self.path is not None  # the driver has refused a recorder without one
        return self._create_copy(path_of_part(self.path, name), name=name)

    def trace(self) -> Trace:
        """The trace so far, as an object in Chrome's Trace Event Format."""
        trace = trace_of(self._recording)
        if found := "; ".join(filter(None, (gate.finding for gate in self._gates))):
            trace["otherData"]["finding"] = found
        return trace

    def write(self, path: str | PathLike[str]) -> None:
        """Write the trace so far to a file, as JSON. Creates its directory, and replaces the file as a whole.

        Args:
            path: The file. A `~` at its beginning is the home directory.

        Raises:
            TypeError, ValueError: `path` is not the path of a file.
            OSError: The file cannot be written.
        """
        file = Path(check_path("path", path))
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, json.dumps(self.trace(), ensure_ascii=False))

    # The run, and its records

    def run_started(self, options: Options) -> None:
        if self._has_run:
            raise RuntimeError("a TraceRecorder records one run of one operator: create a new one for each run")
        super().run_started(options)
        self._has_run = True
        self._gates = [gate for gate in options.gates if isinstance(gate, Gate)]
        self._recording.zero = self._recording.last = self.zero

    def accepted(self, sequence: int, element: Any) -> None:
        now, value = self._now(), self.describe(element)
        self._recording.records.offer(sequence, lambda: RecordSteps(sequence, value, now))

    def held_back(self, sequence: int, element: Any) -> None:
        self._step(sequence, lambda record, now: record.begin("wait for a gate", now))

    def waits_for_slot(self, sequence: int, element: Any) -> None:
        self._step(sequence, RecordSteps.wait_for_slot)

    def grouped(self, sequences: Sequence[int]) -> None:
        self._group_calls |= dict.fromkeys(sequences, GroupCall(len(sequences)))

    def started(self, sequence: int, element: Any) -> None:
        call = self._group_calls.get(sequence)
        self._step(sequence, lambda record, now: record.enter_slot(now, call))

    def retried(self, sequence: int, element: Any, attempt: int) -> None:
        self.started(sequence, element)

    def attempt_failed(self, sequence: int, element: Any, attempt: int, error: Exception) -> None:
        self._step(sequence, lambda record, now: record.end(now, "failed", type(error).__name__))

    def backing_off(self, sequence: int, element: Any, attempt: int, seconds: float) -> None:
        self._group_calls.pop(sequence, None)
        self._step(sequence, RecordSteps.back_off)

    def completed(self, sequence: int, element: Any, attempts: int, seconds: float) -> None:
        self._step(sequence, lambda record, now: record.finish(now, "completed", attempts))

    def timed_out(self, sequence: int, element: Any, attempts: int, seconds: float) -> None:
        self._step(sequence, lambda record, now: record.finish(now, "timed out", attempts))

    def cancelled(self, sequence: int, element: Any, attempts: int, seconds: float) -> None:
        self._step(sequence, lambda record, now: record.finish(now, "cancelled", attempts))

    def failed(self, sequence: int, element: Any, attempts: int, seconds: float, error: Exception) -> None:
        call = self._group_calls.get(sequence)
        self._step(sequence, lambda record, now: record.fail(now, attempts, type(error).__name__, call))

    def slot_freed(self, sequence: int, element: Any) -> None:
        self._group_calls.pop(sequence, None)
        self._step(sequence, RecordSteps.free_slot)

    def dequeued(self, sequence: int, element: Any) -> None:
        self._step(sequence, RecordSteps.dequeue)

    def emitted(self, sequence: int, element: Any) -> None:
        self._step(sequence, RecordSteps.emit)

    # Watermarks

    def watermark_accepted(self, sequence: int, watermark: Watermark) -> None:
        now, timestamp = self._now(), self.describe(watermark.timestamp)
        self._recording.watermarks.offer(sequence, lambda: WatermarkSteps(sequence, timestamp, now))

    def watermark_emitted(self, sequence: int, watermark: Watermark) -> None:
        now = self._now()
        if (steps := self._recording.watermarks.get(sequence)) is not None:
            steps.received = now

    def _step(self, sequence: int, step: Callable[[RecordSteps, float], None]) -> None:
        """Record a step, unless the record is left out. Then the time is not read, which costs more than the rest."""
        record = self._recording.records.get(sequence)
        if record is not None:
            step(record, self._now())

    def _now(self) -> float:
        self._recording.last = trio.current_time()
        return self._recording.last
