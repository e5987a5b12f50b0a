"""The element queue: what has been accepted and may not go out yet.

A queue is plain data: it never awaits, holds no lock and knows no Trio, so a test drives it by hand. Order
lives here and nowhere else. Subclasses decide only which entry `poll` gives next.

This follows Flink's `StreamElementQueue` after FLINK-12958, with one change: a record that is done keeps a
place in the queue and nothing else, so that what limits memory (the bound) is not what limits the calls.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from .elements import StreamRecord, Watermark, with_value

__all__ = ["Entry", "StreamElementQueue"]


class Entry:
    """One element in a queue, and its results once there are any.

    Attributes:
        element: What was put: a `StreamRecord`, a `Watermark` or a bare value.
        value: What the function is called with.
        results: The results, None until the entry is done.
        is_watermark: Whether the element is a watermark, which counts in no limit.
        sequence: The element's position in the queue's input, counted from 0.
        attempts: Calls made for this element so far.
        since: When its present state began (waiting for a slot, running, done), in seconds on Trio's clock.
        received: How many of the results the consumer has received.
    """

    __slots__ = ("attempts", "element", "is_watermark", "received", "results", "sequence", "since", "value")

    def __init__(self, element: Any, sequence: int, is_watermark: bool = False) -> None:  # noqa: FBT001, FBT002 - hot
        self.element = element
        self.sequence = sequence
        self.is_watermark = is_watermark
        self.value = element.value if isinstance(element, StreamRecord) else element
        self.results: Sequence[Any] | None = None
        self.attempts = 0
        self.since = 0.0
        self.received = 0

    @property
    def is_done(self) -> bool:
        """Whether there are results. A watermark is done from the start."""
        return self.results is not None

    def next_output(self) -> Any:
        """What the consumer receives next of a done entry: a result, with the timestamp that its element has."""
        assert self.results is not None
        result = self.results[self.received]
        return result if self.value is self.element else with_value(self.element, result)

    def complete(self, results: Sequence[Any]) -> None:
        """Give the entry its results. The first call wins; a later one changes nothing."""
        if self.results is None:
            self.results = results


class StreamElementQueue(ABC):
    """What the three queues share: the bound, the count and the order of arrival.

    Args:
        bound: Most records held at once, at least 1. As many watermarks may wait beside them.

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
        """The number of records held; watermarks do not count."""
        return self._records

    def is_empty(self) -> bool:
        """Whether nothing is held, neither a record nor a watermark."""
        return not (self._records or self._watermarks)

    def try_put(self, element: Any) -> Entry | None:
        """The new entry for `element`, or None if the queue is full and nothing was put."""
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
        """Remove and return the next entry that may go out.

        Raises:
            IndexError: No entry may go out yet: ask `has_completed` first.
        """
        entry = self._next()
        if entry.is_watermark:
            self._watermarks -= 1
        else:
            self._records -= 1
        return entry

    def values(self) -> list[Any]:
        """The elements held, in the order in which they arrived."""
        return [entry.element for entry in self.entries()]

    def may_start(self, entry: Entry) -> bool:  # noqa: ARG002 - the keyed queue looks at it
        """Whether the new record's invocation may start now."""
        return True

    def successor(self, entry: Entry) -> Entry | None:  # noqa: ARG002 - the keyed queue looks at it
        """The record that was waiting for this entry to be done and whose invocation may start now."""
        return None

    @abstractmethod
    def has_completed(self) -> bool:
        """Whether there is an entry that may go out."""

    @abstractmethod
    def entries(self) -> list[Entry]:
        """The entries held, in the order in which they arrived."""

    @abstractmethod
    def _admit_record(self, element: Any) -> Entry: ...

    @abstractmethod
    def _admit_watermark(self, element: Watermark) -> Entry: ...

    @abstractmethod
    def _next(self) -> Entry: ...
