"""The element queue: the output order of the accepted elements.

A queue is plain data. It never awaits, holds no lock and does not import Trio, so a test can drive it step by step.
Subclasses decide only which entry `poll` returns next.

This follows Flink's `StreamElementQueue` after FLINK-12958, with one change: a completed record occupies a place in the
queue, but no slot. Two limits result: the bound protects memory, the capacity protects the service.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from .elements import StreamRecord, Watermark, with_value
from .samples import Samples

__all__ = ["Entry", "StreamElementQueue"]


class Entry:
    """An element in a queue, with its results when it is completed.

    Attributes:
        element: The `StreamRecord`, `Watermark` or bare value that was put.
        value: The argument of the function.
        results: The results, or None until the entry is completed.
        is_watermark: Whether the element is a watermark.
        sequence: The element's position in the queue's input, counted from 0.
        attempts: The number of calls made for this element.
        since: The start of its present state (waiting for a slot, running or completed), in seconds on Trio's clock.
        received: The number of results that the consumer has received.
        samples: Those that count the durations of this record, or None.
        load: The number of running invocations when this one started, itself included, if `samples` is not None.
    """

    __slots__ = (
        "attempts",
        "element",
        "is_watermark",
        "load",
        "received",
        "results",
        "samples",
        "sequence",
        "since",
        "value",
    )

    load: int  # not set in `__init__`, which costs too much for something that few entries need

    def __init__(self, element: Any, sequence: int, is_watermark: bool = False) -> None:  # noqa: FBT001, FBT002 - hot
        self.element = element
        self.sequence = sequence
        self.is_watermark = is_watermark
        self.value = element.value if isinstance(element, StreamRecord) else element
        self.results: Sequence[Any] | None = None
        self.attempts = 0
        self.since = 0.0
        self.received = 0
        self.samples: Samples | None = None

    @property
    def records(self) -> Sequence[Entry]:
        """The records of its call: itself. A `Group` has several."""
        return (self,)

    @property
    def is_done(self) -> bool:
        """Whether the entry has its results. A watermark has them from the start."""
        return self.results is not None

    def next_output(self) -> Any:
        """The next output of a completed entry: a result, with the timestamp of the element."""
        assert self.results is not None
        result = self.results[self.received]
        return result if self.value is self.element else with_value(self.element, result)

    def complete(self, results: Sequence[Any]) -> None:
        """Set the results. The first call wins; a later one has no effect."""
        if self.results is None:
            self.results = results


class StreamElementQueue(ABC):
    """The common part of the three queues: the bound, the counts and the arrival order.

    Args:
        bound: Upper limit of records held at once, at least 1. The same number of watermarks may be held besides.

    Raises:
        ValueError: `bound` is below 1.
    """

    has_keys = False  # whether `may_start` and `successor` depend on the entry

    def __init__(self, bound: int) -> None:
        if bound < 1:
            raise ValueError(f"bound must be at least 1, got {bound}")
        self.bound = bound
        self._records = 0
        self._watermarks = 0
        self.arrived = 0

    def __len__(self) -> int:
        """The number of records held. Watermarks do not count."""
        return self._records

    def is_empty(self) -> bool:
        """Whether the queue holds neither a record nor a watermark."""
        return not (self._records or self._watermarks)

    def try_put(self, element: Any) -> Entry | None:
        """Put an element and return its entry. None if the queue is full; nothing was put then."""
        if isinstance(element, Watermark):
            if self._watermarks >= self.bound:
                return None
            entry = self._admit_watermark(element)
            entry.complete([element])
            self._watermarks += 1
        else:
            if self._records >= self.bound:
                return None
            entry = self._admit_record(element)
            self._records += 1
        self.arrived += 1
        return entry

    def poll(self) -> Entry:
        """Remove and return the next entry that may be emitted.

        Raises:
            IndexError: No entry may be emitted yet. Check `has_completed` first.
        """
        entry = self._next()
        if entry.is_watermark:
            self._watermarks -= 1
        else:
            self._records -= 1
        return entry

    def values(self) -> list[Any]:
        """The elements held, in arrival order."""
        return [entry.element for entry in self.entries()]

    def may_start(self, entry: Entry) -> bool:  # noqa: ARG002 - the keyed queue needs it
        """Whether the invocation of a new record may start now."""
        return True

    def successor(self, entry: Entry) -> Entry | None:  # noqa: ARG002 - the keyed queue needs it
        """The record that waited for this entry to be completed and may start now, or None."""
        return None

    @abstractmethod
    def has_completed(self) -> bool:
        """Whether an entry may be emitted."""

    @abstractmethod
    def entries(self) -> list[Entry]:
        """The entries held, in arrival order."""

    @abstractmethod
    def _admit_record(self, element: Any) -> Entry: ...

    @abstractmethod
    def _admit_watermark(self, element: Watermark) -> Entry: ...

    @abstractmethod
    def _next(self) -> Entry: ...
