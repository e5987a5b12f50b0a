"""The ordered queue: output in input order."""

from __future__ import annotations

from collections import deque
from typing import Any

from .elements import Watermark
from .queue import Entry, StreamElementQueue

__all__ = ["OrderedStreamElementQueue"]


class OrderedStreamElementQueue(StreamElementQueue):
    """A queue that emits elements in input order.

    Invariant: `poll` returns the entries in the order in which they were put. Only the head may be emitted, once it is
    completed. A watermark is completed from the start and waits for its place like a record (Flink's
    `OrderedStreamElementQueue`).

    Args:
        bound: Upper limit of records held at once, at least 1.

    Example:
        >>> queue = OrderedStreamElementQueue(2)
        >>> first, second = queue.try_put("a"), queue.try_put("b")
        >>> second.complete(["B"])
        >>> queue.has_completed()
        False
        >>> first.complete(["A"])
        >>> queue.poll().results, queue.poll().results
        (['A'], ['B'])
    """

    def __init__(self, bound: int) -> None:
        super().__init__(bound)
        self._entries: deque[Entry] = deque()

    def has_completed(self) -> bool:
        """Whether the head is completed."""
        entries = self._entries
        return bool(entries) and entries[0].results is not None

    def entries(self) -> list[Entry]:
        """The entries held, in arrival order."""
        return list(self._entries)

    def _admit_record(self, element: Any) -> Entry:
        entry = Entry(element, self.arrived)
        self._entries.append(entry)
        return entry

    def _admit_watermark(self, element: Watermark) -> Entry:
        entry = Entry(element, self.arrived, is_watermark=True)
        self._entries.append(entry)
        return entry

    def _next(self) -> Entry:
        if self._entries and self._entries[0].results is None:
            raise IndexError("no entry may be emitted yet")
        return self._entries.popleft()
