"""An observer adapter: replaces the operator's elements, which are rows, with the values of their input columns."""

from __future__ import annotations

from typing import Any

from trio_asyncio_io import Observer, Options, Statistics, StreamRecord, Verdict, Watermark

__all__ = ["RowObserver"]


class RowObserver(Observer):
    """Calls each hook of the user's observer with the tuple of the row's input values as the element."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def run_started(self, options: Options) -> None:
        self._observer.run_started(options)

    def run_ended(self, statistics: Statistics, verdict: Verdict) -> None:
        self._observer.run_ended(statistics, verdict)

    def accepted(self, sequence: int, element: Any) -> None:
        self._observer.accepted(sequence, _inputs(element))

    def held_back(self, sequence: int, element: Any) -> None:
        self._observer.held_back(sequence, _inputs(element))

    def started(self, sequence: int, element: Any) -> None:
        self._observer.started(sequence, _inputs(element))

    def attempt_failed(self, sequence: int, element: Any, attempt: int, error: Exception) -> None:
        self._observer.attempt_failed(sequence, _inputs(element), attempt, error)

    def backing_off(self, sequence: int, element: Any, attempt: int, seconds: float) -> None:
        self._observer.backing_off(sequence, _inputs(element), attempt, seconds)

    def slot_yielded(self, sequence: int, element: Any) -> None:
        self._observer.slot_yielded(sequence, _inputs(element))

    def slot_regained(self, sequence: int, element: Any) -> None:
        self._observer.slot_regained(sequence, _inputs(element))

    def retried(self, sequence: int, element: Any, attempt: int) -> None:
        self._observer.retried(sequence, _inputs(element), attempt)

    def timed_out(self, sequence: int, element: Any, attempts: int, seconds: float) -> None:
        self._observer.timed_out(sequence, _inputs(element), attempts, seconds)

    def completed(self, sequence: int, element: Any, attempts: int, seconds: float) -> None:
        self._observer.completed(sequence, _inputs(element), attempts, seconds)

    def failed(self, sequence: int, element: Any, attempts: int, seconds: float, error: Exception) -> None:
        self._observer.failed(sequence, _inputs(element), attempts, seconds, error)

    def cancelled(self, sequence: int, element: Any, attempts: int, seconds: float) -> None:
        self._observer.cancelled(sequence, _inputs(element), attempts, seconds)

    def slot_freed(self, sequence: int, element: Any) -> None:
        self._observer.slot_freed(sequence, _inputs(element))

    def dequeued(self, sequence: int, element: Any) -> None:
        self._observer.dequeued(sequence, _inputs(element))

    def emitted(self, sequence: int, element: Any) -> None:
        self._observer.emitted(sequence, _inputs(element))

    def watermark_accepted(self, sequence: int, watermark: Watermark) -> None:
        self._observer.watermark_accepted(sequence, watermark)

    def watermark_emitted(self, sequence: int, watermark: Watermark) -> None:
        self._observer.watermark_emitted(sequence, watermark)


def _inputs(element: Any) -> tuple[Any, ...]:
    row = element.value if isinstance(element, StreamRecord) else element
    inputs: tuple[Any, ...] = row.inputs
    return inputs
