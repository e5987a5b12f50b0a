"""The unordered queue: out in the order of completion, within the segments between watermarks."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from .elements import Watermark
from .queue import Entry, StreamElementQueue

__all__ = ["Segment", "SegmentEntry", "UnorderedStreamElementQueue"]


class Segment:
    """The records between two watermarks: those that wait, and those that are done, in completion order."""

    __slots__ = ("done", "waiting")

    def __init__(self) -> None:
        self.waiting: set[SegmentEntry] = set()
        self.done: deque[Entry] = deque()

    def is_empty(self) -> bool:
        return not (self.waiting or self.done)


class SegmentEntry(Entry):
    """An entry that tells its segment when it is done."""

    __slots__ = ("_segment",)

    def __init__(self, element: Any, sequence: int, segment: Segment, is_watermark: bool = False) -> None:  # noqa: FBT001, FBT002 - hot
        Entry.__init__(self, element, sequence, is_watermark)  # `super()` costs as much again, for each element
        self._segment = segment
        segment.waiting.add(self)

    def complete(self, results: Sequence[Any]) -> None:
        if self.results is None:
            self.results = results
            segment = self._segment  # `leave_waiting`, less the call
            segment.waiting.discard(self)
            segment.done.append(self)

    def leave_waiting(self) -> None:
        """Move to the done side of the segment."""
        segment = self._segment
        segment.waiting.discard(self)
        segment.done.append(self)


class UnorderedStreamElementQueue(StreamElementQueue):
    """A queue that gives what is done first, and never lets a record cross a watermark.

    Invariant: segments stand in the order of arrival, a watermark is a segment of its own, only the first
    segment gives anything, and it leaves once it is empty and another stands behind it. Records of one
    segment may overtake each other; nothing else may (Flink's `UnorderedStreamElementQueue`).

    Args:
        bound: Most records held at once, at least 1.

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
        """Whether the first segment has a record that is done, or is a watermark."""
        return bool(self._segments[0].done)

    def entries(self) -> list[Entry]:
        """The entries held, in the order in which they arrived."""
        held = (entry for segment in self._segments for entry in (*segment.waiting, *segment.done))
        return sorted(held, key=lambda entry: entry.sequence)

    def _admit_record(self, element: Any) -> Entry:
        return SegmentEntry(element, self.arrived, self._segments[-1])

    def _admit_watermark(self, element: Watermark) -> Entry:
        wall = Segment()
        entry = SegmentEntry(element, self.arrived, wall, is_watermark=True)
        self._segments.extend((wall, Segment()))
        self._leave_empty_segments()
        return entry

    def _next(self) -> Entry:
        first = self._segments[0]
        if not first.done:
            raise IndexError("no entry may go out yet")
        entry = first.done.popleft()
        if not (first.done or first.waiting):
            self._leave_empty_segments()
        return entry

    def _leave_empty_segments(self) -> None:
        while len(self._segments) > 1 and self._segments[0].is_empty():
            self._segments.popleft()
