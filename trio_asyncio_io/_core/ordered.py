"""The ordered queue: out in the order in which elements came in."""

from __future__ import annotations

from collections import deque
from typing import Any

from .elements import Watermark
from .queue import Entry, StreamElementQueue

__all__ = ["OrderedStreamElementQueue"]


class OrderedStreamElementQueue(StreamElementQueue):
    """A queue whose head goes out once it is done, and nothing before it.

    Invariant: what `poll` gives is a prefix of what was put. Watermarks need no care of their own: they are
    done from the start and wait their turn like any element (Flink's `OrderedStreamElementQueue`).

    Args:
        bound: Most records held at once, at least 1.

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
        """Whether the head is done."""
        entries = self._entries
        return bool(entries) and entries[0].results is not None

    def entries(self) -> list[Entry]:
        """The entries held, in the order in which they arrived."""
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
            raise IndexError("no entry may go out yet")
        return self._entries.popleft()
