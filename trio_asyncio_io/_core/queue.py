"""The element queues: the output order of the accepted elements.

A queue is plain data. It never awaits, holds no lock and does not import Trio, so a test can drive it step by step. The
three queues decide only which entry `poll` returns next:

    ordered      the oldest entry, once it is completed
    unordered    any completed entry of the oldest segment, which are the records between two watermarks
    keyed        the same, and a record only after the older ones of its key

This follows Flink's `StreamElementQueue` after FLINK-12958, with one change: a completed record occupies a place in the
queue, but no slot. Two limits result: the bound protects memory, the capacity protects the service.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from .describe import describe
from .elements import Element, Watermark, value_of, with_value
from .samples import Samples

__all__ = [
    "Entry",
    "KeyedStreamElementQueue",
    "OrderedStreamElementQueue",
    "StreamElementQueue",
    "UnorderedStreamElementQueue",
]


class Entry:
    """An element in a queue, with its results when it is completed.

    Attributes:
        element: The `StreamRecord`, `Watermark` or bare value that was put.
        value: The argument of the function: the element, or the value of a `StreamRecord`.
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

    def __init__(self, element: Any, sequence: int) -> None:
        self.element = self.value = element
        self.sequence = sequence
        self.is_watermark = False
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
        is_bare = not isinstance(element, Element)  # one test for a bare value: each that fails is expensive
        if not is_bare and isinstance(element, Watermark):
            if self._watermarks >= self.bound:
                return None
            entry = self._admit_watermark(element)
            entry.is_watermark = True
            entry.complete([element])
            self._watermarks += 1
        else:
            if self._records >= self.bound:
                return None
            entry = self._admit_record(element)
            if not is_bare:
                entry.value = value_of(element)
            self._records += 1
        self.arrived += 1
        return entry

    def poll(self) -> Entry:
        """Remove and return the next entry that may be emitted.

        Raises:
            IndexError: No entry may be emitted yet. Check `has_completed` first, or call `next_completed`.
        """
        entry = self.next_completed()
        if entry is None:
            raise IndexError("no entry may be emitted yet")
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
    def next_completed(self) -> Entry | None:
        """Remove and return the next entry that may be emitted. None if there is none yet."""

    @abstractmethod
    def entries(self) -> list[Entry]:
        """The entries held, in arrival order."""

    @abstractmethod
    def _admit_record(self, element: Any) -> Entry: ...

    @abstractmethod
    def _admit_watermark(self, element: Watermark) -> Entry: ...


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

    def next_completed(self) -> Entry | None:
        """Remove and return the head. None if it is not completed."""
        entries = self._entries
        if not entries or entries[0].results is None:
            return None
        entry = entries.popleft()
        if entry.is_watermark:
            self._watermarks -= 1
        else:
            self._records -= 1
        return entry

    def entries(self) -> list[Entry]:
        """The entries held, in arrival order."""
        return list(self._entries)

    def _admit_record(self, element: Any) -> Entry:
        entry = Entry(element, self.arrived)
        self._entries.append(entry)
        return entry

    def _admit_watermark(self, element: Watermark) -> Entry:
        entry = Entry(element, self.arrived)
        self._entries.append(entry)
        return entry


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

    def __init__(self, element: Any, sequence: int, segment: Segment) -> None:
        Entry.__init__(self, element, sequence)  # `super()` would double the cost
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

    def next_completed(self) -> Entry | None:
        """Remove and return the entry of the first segment that was completed first. None if none is."""
        first = self._segments[0]
        if not first.completed:
            return None
        entry = first.completed.popleft()
        if entry.is_watermark:
            self._watermarks -= 1
        else:
            self._records -= 1
        if not (first.completed or first.waiting):
            self._remove_empty_segments()
        return entry

    def entries(self) -> list[Entry]:
        """The entries held, in arrival order."""
        held = (entry for segment in self._segments for entry in (*segment.waiting, *segment.completed))
        return sorted(held, key=lambda entry: entry.sequence)

    def _admit_record(self, element: Any) -> Entry:
        return SegmentEntry(element, self.arrived, self._segments[-1])

    def _admit_watermark(self, element: Watermark) -> Entry:
        wall = Segment()
        entry = SegmentEntry(element, self.arrived, wall)
        self._segments.extend((wall, Segment()))
        self._remove_empty_segments()
        return entry

    def _remove_empty_segments(self) -> None:
        while len(self._segments) > 1 and self._segments[0].is_empty():
            self._segments.popleft()


class _KeyedEntry(SegmentEntry):
    """An entry that is emitted after the older entries of its key.

    Attributes:
        key: The key.
        is_head: Whether all older entries of the key are completed.
        next: The entry of the key that arrived next, or None.
    """

    __slots__ = ("is_head", "key", "next")

    def __init__(
        self, element: Any, sequence: int, segment: Segment, key: Hashable, previous: _KeyedEntry | None
    ) -> None:
        SegmentEntry.__init__(self, element, sequence, segment)
        self.key = key
        self.next: _KeyedEntry | None = None
        self.is_head: bool = previous is None or (previous.is_head and previous.results is not None)
        if previous is not None:
            previous.next = self

    def complete(self, results: Sequence[Any]) -> None:
        if self.results is None:
            self.results = results
            if self.is_head:
                self._leave_lane()

    def _leave_lane(self) -> None:
        """Move to the completed entries, with those after it that are completed, too. The next one is the head."""
        entry: _KeyedEntry | None = self
        while entry is not None and entry.results is not None:
            entry.move_to_completed()
            entry = entry.next
            if entry is not None:
                entry.is_head = True


class KeyedStreamElementQueue(UnorderedStreamElementQueue):
    """A queue in which the records of one key start and are emitted in input order.

    Invariant: the unfinished records of a key form a lane, and only the first of a lane may be running. So the records
    of one key complete one after another, and completion order within a segment is input order per key. Watermarks are
    walls, as in the unordered queue (Flink's keyed ordering, FLIP-519).

    A record that waits in its lane counts towards the bound, but occupies no slot. A hot key slows down only itself, as
    long as the bound has room for the other keys.

    Args:
        bound: Upper limit of records held at once, at least 1.
        key: value -> hashable. Records with equal keys keep their order.

    Raises:
        TypeError, ValueError: `bound` is out of its range.

    Example:
        >>> queue = KeyedStreamElementQueue(3, key=lambda value: value[0])
        >>> a1, a2, b1 = (queue.try_put(value) for value in ("a1", "a2", "b1"))
        >>> [queue.may_start(entry) for entry in (a1, a2, b1)]
        [True, False, True]
        >>> a1.complete(["A1"])
        >>> queue.successor(a1) is a2
        True
    """

    has_keys = True

    def __init__(self, bound: int, *, key: Callable[[Any], Hashable]) -> None:
        super().__init__(bound)
        self._key = key
        self._newest: dict[Hashable, _KeyedEntry] = {}  # the newest entry of each key, unless it has been emitted

    def may_start(self, entry: Entry) -> bool:
        """Whether the record is unfinished and the first of its lane."""
        return isinstance(entry, _KeyedEntry) and entry.is_head and entry.results is None

    def successor(self, entry: Entry) -> Entry | None:
        """The record that followed this completed one in its lane and may start now, or None."""
        following = entry.next if isinstance(entry, _KeyedEntry) else None
        while following is not None and following.results is not None:
            following = following.next
        return following

    def _admit_record(self, element: Any) -> Entry:
        key = self._key(value_of(element))
        try:
            previous = self._newest.get(key)
        except TypeError as error:
            raise TypeError(
                f"key returned an unhashable value, {describe(key)}, for {describe(value_of(element))}: "
                "return a string, a number or a tuple of them"
            ) from error
        entry = _KeyedEntry(element, self.arrived, self._segments[-1], key, previous)
        self._newest[key] = entry
        return entry

    def next_completed(self) -> Entry | None:
        """Remove and return the entry of the first segment that was completed first. None if none is."""
        entry = super().next_completed()
        if isinstance(entry, _KeyedEntry) and self._newest.get(entry.key) is entry:
            del self._newest[entry.key]
        return entry
