"""The recorder: an observer that follows each record into its slots and out of them.

The hooks of an observer are the steps of the operator. A view also needs to know which records have a slot now, and
which end of an invocation counts. That is decided here, once, for reports and traces.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Self

import trio

from .._core.describe import describe, printable
from .._core.elements import value_of
from .._core.observer import Observer
from .._core.options import Options
from .steps import GroupCall

__all__ = ["Recorder"]


class Recorder(Observer):
    """The common part of `Report` and `TraceRecorder`.

    Args:
        path: Where to write what was recorded, or None.
        name: The name of the operator, or the heading.
        values: Whether to describe values of elements.
        create_copy: Creates a recorder like this one, for a path.

    Attributes:
        path: As given.
        zero: The instant at which the run started.
    """

    def __init__(
        self, path: str | PathLike[str] | None, name: str, *, values: bool, create_copy: Callable[..., Self]
    ) -> None:
        self.path = None if path is None else Path(path)
        self.zero = 0.0
        self._name = printable(name)
        self._values = values
        self._create_copy = create_copy
        self._in_slot: set[int] = set()
        self._group_calls: dict[int, GroupCall] = {}  # by sequence, of the records that have or get a slot
        self._late: set[int] = set()  # records that have timed out and still have their slot

    def __reduce__(self) -> tuple[Callable[..., Self], tuple[Path | None]]:
        # What was recorded stays here. On another machine, a relative path would be below another directory
        return self._create_copy, (self.path and self.path.absolute(),)

    # For views

    def take_slot(self) -> None:
        """A slot becomes busy, with a record or a group."""

    def free_slot(self) -> None:
        """A slot becomes free."""

    def enter_slot(self, sequence: int, call: GroupCall | None) -> None:
        """The record has a slot: its next attempt follows, alone (None) or in this call."""

    def leave_slot(self, sequence: int) -> None:
        """The record has no slot any more."""

    def end(self, sequence: int, element: Any, outcome: str, attempts: int, seconds: float, *, error: str = "") -> None:
        """The invocation has ended: "completed", "failed", "timed out" or "cancelled". Called once for each record."""

    def describe(self, element: Any) -> str | None:
        """A description of the element's value. None if values are not recorded."""
        if not self._values:
            return None
        value = value_of(element)
        return printable(describe(value).strip("'") if isinstance(value, str) else describe(value))

    # The hooks

    def run_started(self, options: Options) -> None:
        self.zero = trio.current_time()

    def grouped(self, sequences: Sequence[int]) -> None:
        self._group_calls |= dict.fromkeys(sequences, GroupCall(len(sequences)))

    def started(self, sequence: int, element: Any) -> None:
        self._in_slot.add(sequence)
        call = self._group_calls.get(sequence)
        if call is None or call.enter():
            self.take_slot()
        self.enter_slot(sequence, call)

    def retried(self, sequence: int, element: Any, attempt: int) -> None:
        self.started(sequence, element)

    def backing_off(self, sequence: int, element: Any, attempt: int, seconds: float) -> None:
        self._free(sequence)

    def completed(self, sequence: int, element: Any, attempts: int, seconds: float) -> None:
        self.end(sequence, element, "completed", attempts, seconds)

    def timed_out(self, sequence: int, element: Any, attempts: int, seconds: float) -> None:
        self.end(sequence, element, "timed out", attempts, seconds)
        self._late.add(sequence)

    def failed(self, sequence: int, element: Any, attempts: int, seconds: float, error: Exception) -> None:
        if sequence not in self._in_slot:  # a gate has refused its retry, so the slot is for its handler
            self.started(sequence, element)
        if sequence not in self._late:  # otherwise it counts as timed out
            self.end(sequence, element, "failed", attempts, seconds, error=type(error).__name__)

    def cancelled(self, sequence: int, element: Any, attempts: int, seconds: float) -> None:
        self.end(sequence, element, "cancelled", attempts, seconds)

    def slot_freed(self, sequence: int, element: Any) -> None:
        self._free(sequence)
        self._late.discard(sequence)

    def _free(self, sequence: int) -> None:
        if sequence in self._in_slot:
            self._in_slot.remove(sequence)
            self.leave_slot(sequence)
            call = self._group_calls.pop(sequence, None)
            if call is None or call.leave():
                self.free_slot()
