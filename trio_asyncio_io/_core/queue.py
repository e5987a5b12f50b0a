"""The output orders: which of the accepted elements may be emitted next.

An order is plain data. It never awaits, holds no lock and does not import Trio, so a test can drive it step by step. It
holds entries from `append` to `take`:

    ordered      `take` returns the oldest entries, up to the first that is not completed
    unordered    completed entries of the oldest segment: a watermark and the records before the next one
    keyed        the same, and a record only after the older ones of its key

They follow Flink's `StreamElementQueue` after FLINK-12958, with one change: a completed record occupies a place in the
buffer, but no slot. Two limits result: the buffer protects memory, the capacity protects the service. An order knows
neither; `Ledger` keeps them, and `queues` has the same orders with a bound.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from .._account.samples import Samples
from .._values.describe import describe
from .elements import Watermark


class Entry:
    """An element from its arrival until its last output has been received.

    Attributes:
        element: The `StreamRecord`, `Watermark` or bare value that arrived.
        value: The argument of the function: the element, or the value of a `StreamRecord`.
        results: The results, or None until the entry is completed.
        is_watermark: Whether the element is a watermark.
        sequence: The element's position in the input, counted from 0.
        attempts: The number of calls made for this element.
        since: When its present wait for a slot began, or its first attempt, or when it was completed, in seconds on
            Trio's clock. The wait for its key does not count.
        samples: Those that count the durations of this record, or None.
        load: The number of running invocations when this one started, itself included, if `samples` is not None.
    """

    __slots__ = ("attempts", "element", "load", "results", "samples", "sequence", "since", "value")

    is_watermark = False
    load: int  # not set in `__init__`, which costs too much for something that few entries need
    size: int = 1  # the number of records of its call: a `Group` has several
    half: Any = None  # of the call that was split: only a `Group` has one
    depth: int = 0  # how many calls have been split to make its call

    def __init__(self, element: Any, value: Any, sequence: int, since: float) -> None:
        self.element = element
        self.value = value
        self.sequence = sequence
        self.since = since
        self.results: Sequence[Any] | None = None
        self.attempts = 0
        self.samples: Samples | None = None

    @property
    def records(self) -> Sequence[Entry]:
        """The records of its call: itself."""
        return (self,)

    @property
    def is_done(self) -> bool:
        """Whether the entry has its results. A watermark has them from the start."""
        return self.results is not None

    def complete(self, results: Sequence[Any]) -> None:
        """Set the results. The first call wins; a later one has no effect."""
        if self.results is None:
            self.results = results


class _WatermarkEntry(Entry):
    __slots__ = ()

    is_watermark = True

    def __init__(self, watermark: Watermark, sequence: int, since: float) -> None:
        super().__init__(watermark, watermark, sequence, since)
        self.results = [watermark]


class Order(ABC):
    """The common part of the three orders."""

    has_keys = False  # whether `may_start` and `successor` depend on the entry
    entry_type: type[Entry] = Entry  # that of a record

    @abstractmethod
    def append(self, entry: Entry) -> None:
        """Append a record: a new entry of `entry_type`, whose `since` is the present time."""

    @abstractmethod
    def append_watermark(self, watermark: Watermark, sequence: int, since: float) -> Entry:
        """Append a watermark and return its entry, which is completed."""

    @abstractmethod
    def has_completed(self) -> bool:
        """Whether an entry may be emitted."""

    @abstractmethod
    def take(self, limit: int) -> list[Entry]:
        """Remove and return the next entries that may be emitted, at most `limit`."""

    @abstractmethod
    def entries(self) -> list[Entry]:
        """The entries held, in arrival order."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Whether neither a record nor a watermark is held."""

    def may_start(self, entry: Entry) -> bool:  # noqa: ARG002 - the order by keys needs it
        """Whether the invocation of a new record may start now."""
        return True

    def successor(self, entry: Entry) -> Entry | None:  # noqa: ARG002 - the order by keys needs it
        """The record that waited for this entry to be completed and may start now, or None."""
        return None


class InputOrder(Order):
    """Entries leave in the order in which they arrived ("ordered"). See `queues.OrderedStreamElementQueue`."""

    def __init__(self) -> None:
        self._entries: deque[Entry] = deque()

    def append(self, entry: Entry) -> None:
        self._entries.append(entry)

    def append_watermark(self, watermark: Watermark, sequence: int, since: float) -> Entry:
        entry = _WatermarkEntry(watermark, sequence, since)
        self._entries.append(entry)
        return entry

    def has_completed(self) -> bool:
        entries = self._entries
        return bool(entries) and entries[0].results is not None

    def take(self, limit: int) -> list[Entry]:
        entries = self._entries
        taken: list[Entry] = []
        while entries and entries[0].results is not None and len(taken) < limit:
            taken.append(entries.popleft())
        return taken

    def entries(self) -> list[Entry]:
        return list(self._entries)

    def is_empty(self) -> bool:
        return not self._entries


class Segment:
    """The records between two watermarks, and the first of these watermarks.

    Attributes:
        waiting: The entries that are not completed.
        completed: The completed entries, in completion order. The watermark is completed before any record arrives.
    """

    __slots__ = ("completed", "waiting")

    def __init__(self) -> None:
        self.waiting: set[Entry] = set()
        self.completed: deque[Entry] = deque()

    def complete(self, entry: Entry) -> None:
        """The entry, one of those that wait, may be emitted as soon as this is the first segment."""
        self.waiting.discard(entry)
        self.completed.append(entry)

    def take(self, limit: int) -> list[Entry]:
        """Remove and return the next completed entries, at most `limit`."""
        completed = self.completed
        if len(completed) > limit:
            return [completed.popleft() for _ in range(limit)]
        taken = list(completed)
        completed.clear()
        return taken

    def is_empty(self) -> bool:
        """Whether nothing is held."""
        return not (self.waiting or self.completed)


class SegmentEntry(Entry):
    """An entry that moves within its segment when it is completed."""

    __slots__ = ("segment",)

    segment: Segment

    def complete(self, results: Sequence[Any]) -> None:
        if self.results is None:
            self.results = results
            self.segment.complete(self)


class CompletionOrder(Order):
    """Records leave in completion order within a segment ("unordered"). See `queues.UnorderedStreamElementQueue`.

    Invariant: segments are in arrival order. Only the first one emits; it is removed when it is empty and another one
    follows.
    """

    entry_type = SegmentEntry

    def __init__(self) -> None:
        self._segments: deque[Segment] = deque([Segment()])

    def append(self, entry: Any) -> None:
        entry.segment = segment = self._segments[-1]
        segment.waiting.add(entry)

    def append_watermark(self, watermark: Watermark, sequence: int, since: float) -> Entry:
        entry = _WatermarkEntry(watermark, sequence, since)
        segment = Segment()
        segment.completed.append(entry)
        if self._segments[0].is_empty():
            self._segments.popleft()
        self._segments.append(segment)
        return entry

    def has_completed(self) -> bool:
        return bool(self._segments[0].completed)

    def take(self, limit: int) -> list[Entry]:
        taken = self._segments[0].take(limit)
        while len(self._segments) > 1 and self._segments[0].is_empty():
            self._segments.popleft()
            taken += self._segments[0].take(limit - len(taken))
        return taken

    def entries(self) -> list[Entry]:
        held = (entry for segment in self._segments for entry in (*segment.waiting, *segment.completed))
        return sorted(held, key=lambda entry: entry.sequence)

    def is_empty(self) -> bool:
        return all(segment.is_empty() for segment in self._segments)


class _KeyedEntry(SegmentEntry):
    """An entry that is emitted after the older entries of its key.

    Attributes:
        key: The key.
        is_head: Whether all older entries of the key are completed.
        next: The entry of the key that arrived next, or None.
    """

    __slots__ = ("is_head", "key", "next")

    key: Hashable
    next: _KeyedEntry | None
    is_head: bool

    def complete(self, results: Sequence[Any]) -> None:
        if self.results is None:
            self.results = results
            if self.is_head:
                self._leave_lane()

    def _leave_lane(self) -> None:
        """Move to the completed entries, with those after it that are completed, too. The next one is the head."""
        entry: _KeyedEntry | None = self
        while entry is not None and entry.results is not None:
            entry.segment.complete(entry)
            entry = entry.next
            if entry is not None:
                entry.is_head = True


class KeyOrder(CompletionOrder):
    """The records of one key start, and leave, in input order ("keyed"). See `queues.KeyedStreamElementQueue`.

    Invariant: the entries of a key form a lane. `is_head` is true for the first unfinished one and those before it, so
    at most one record of a key runs.

    Args:
        key: value -> hashable. Records with equal keys keep their order.
    """

    has_keys = True
    entry_type = _KeyedEntry

    def __init__(self, key: Callable[[Any], Hashable]) -> None:
        super().__init__()
        self._key = key
        self._newest: dict[Hashable, _KeyedEntry] = {}  # the newest entry of each key, unless it has been emitted

    def append(self, entry: Any) -> None:
        key = self._key(entry.value)
        try:
            previous = self._newest.get(key)
        except TypeError as error:
            raise TypeError(
                f"key returned an unhashable value, {describe(key)}, for {describe(entry.value)}: "
                "return a string, a number or a tuple of them"
            ) from error
        super().append(entry)
        entry.key, entry.next, entry.is_head = key, None, previous is None or (previous.is_head and previous.is_done)
        if previous is not None:
            previous.next = entry
        self._newest[key] = entry

    def take(self, limit: int) -> list[Entry]:
        taken = super().take(limit)
        for entry in taken:
            if isinstance(entry, _KeyedEntry):
                entry.next = None  # whoever keeps this entry does not keep those after it
                if self._newest.get(entry.key) is entry:
                    del self._newest[entry.key]
        return taken

    def may_start(self, entry: Entry) -> bool:
        """Whether the record is unfinished and the first of its lane."""
        return isinstance(entry, _KeyedEntry) and entry.is_head and entry.results is None

    def successor(self, entry: Entry) -> Entry | None:
        """The record that followed this completed one in its lane and may start now, or None. Call it before `take`."""
        following = entry.next if isinstance(entry, _KeyedEntry) and entry.is_head else None
        while following is not None and following.results is not None:
            following = following.next
        return following
