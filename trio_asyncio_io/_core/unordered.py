"""The unordered queue: output in completion order within a segment."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from .elements import Watermark
from .queue import Entry, StreamElementQueue

__all__ = ["Segment", "SegmentEntry", "UnorderedStreamElementQueue"]


class Segment:
    """The records between two watermarks, or a watermark.

    Attributes:
        waiting: The entries that are not completed.
        completed: The completed entries, in completion order.
    """

    __slots__ = ("completed", "waiting")

    def __init__(self) -> None:
        self.waiting: set[SegmentEntry] = set()
        self.completed: deque[Entry] = deque()

    def is_empty(self) -> bool:
        return not (self.waiting or self.completed)


class SegmentEntry(Entry):
    """An entry that moves within its segment when it is completed."""

    __slots__ = ("_segment",)

    def __init__(self, element: Any, sequence: int, segment: Segment, is_watermark: bool = False) -> None:  # noqa: FBT001, FBT002 - hot
        Entry.__init__(self, element, sequence, is_watermark)  # `super()` would double the cost
        self._segment = segment
        segment.waiting.add(self)

    def complete(self, results: Sequence[Any]) -> None:
        if self.results is None:
            self.results = results
            segment = self._segment  # `move_to_completed` without its call
            segment.waiting.discard(self)
            segment.completed.append(self)

    def move_to_completed(self) -> None:
        """Move to the completed entries of the segment."""
        segment = self._segment
        segment.waiting.discard(self)
        segment.completed.append(self)


class UnorderedStreamElementQueue(StreamElementQueue):
    """A queue that emits records in completion order, but never across a watermark.

    Invariant: segments are in arrival order, and a watermark is a segment of its own. Only the first segment emits. It
    is removed when it is empty and another one follows. So records of one segment may overtake each other, and nothing
    else may (Flink's `UnorderedStreamElementQueue`).

    Args:
        bound: Upper limit of records held at once, at least 1.

    Example:
        >>> queue = UnorderedStreamElementQueue(3)
        >>> a, b = queue.try_put("a"), queue.try_put("b")
        >>> _, c = queue.try_put(Watermark(7)), queue.try_put("c")
        >>> for entry in (c, b, a):
        ...     entry.complete([entry.value.upper()])
        >>> [queue.poll().results for _ in range(4)]
        [['B'], ['A'], [Watermark(timestamp=7)], ['C']]
    """

    def __init__(self, bound: int) -> None:
        super().__init__(bound)
        self._segments: deque[Segment] = deque([Segment()])

    def has_completed(self) -> bool:
        """Whether the first segment has a completed record or is a watermark."""
        return bool(self._segments[0].completed)

    def entries(self) -> list[Entry]:
        """The entries held, in arrival order."""
        held = (entry for segment in self._segments for entry in (*segment.waiting, *segment.completed))
        return sorted(held, key=lambda entry: entry.sequence)

    def _admit_record(self, element: Any) -> Entry:
        return SegmentEntry(element, self.arrived, self._segments[-1])

    def _admit_watermark(self, element: Watermark) -> Entry:
        wall = Segment()
        entry = SegmentEntry(element, self.arrived, wall, is_watermark=True)
        self._segments.extend((wall, Segment()))
        self._remove_empty_segments()
        return entry

    def _next(self) -> Entry:
        first = self._segments[0]
        if not first.completed:
            raise IndexError("no entry may be emitted yet")
        entry = first.completed.popleft()
        if not (first.completed or first.waiting):
            self._remove_empty_segments()
        return entry

    def _remove_empty_segments(self) -> None:
        while len(self._segments) > 1 and self._segments[0].is_empty():
            self._segments.popleft()
