"""The keyed queue: output in input order per key, and few invocations per key at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from .checks import check_int
from .describe import describe
from .elements import value_of
from .queue import Entry
from .unordered import Segment, SegmentEntry, UnorderedStreamElementQueue

__all__ = ["KeyedStreamElementQueue"]


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


class _Lane:
    """The unfinished records of a key of which several may run.

    Attributes:
        free: How many more may start.
        waiting: The records that may not start yet, in input order.
    """

    __slots__ = ("free", "waiting")

    def __init__(self, free: int) -> None:
        self.free = free
        self.waiting: deque[_LaneEntry] = deque()

    def release(self) -> _LaneEntry | None:
        """Let the next unfinished record start, and return it. None: there is no such record yet."""
        while self.waiting:
            following = self.waiting.popleft()
            if following.results is None:
                following.is_admitted = True
                return following
        self.free += 1
        return None


class _LaneEntry(_KeyedEntry):
    """An entry of a key of which several may run.

    Attributes:
        lane: That of the key.
        is_admitted: Whether it may start, or has.
        following: The entry that may start because this one is completed, or None.
    """

    __slots__ = ("following", "is_admitted", "lane")

    def enter(self, lane: _Lane) -> None:
        """Start, or wait in this lane."""
        self.lane = lane
        self.following: _LaneEntry | None = None
        self.is_admitted = lane.free > 0
        if self.is_admitted:
            lane.free -= 1
        else:
            lane.waiting.append(self)

    def complete(self, results: Sequence[Any]) -> None:
        if self.results is None:
            super().complete(results)
            if self.is_admitted:
                self.following = self.lane.release()


class KeyedStreamElementQueue(UnorderedStreamElementQueue):
    """A queue in which the records of one key start and are emitted in input order.

    Invariant: the unfinished records of a key form a lane, and only the first `per_key` of a lane may be running. A
    completed record is emitted after the older ones of its key. With `per_key=1`, the records of one key complete one
    after another, and completion order within a segment is input order per key. Watermarks are walls, as in the
    unordered queue (Flink's keyed ordering, FLIP-519).

    A record that waits in its lane counts towards the bound, but occupies no slot. A hot key slows down only itself, as
    long as the bound has room for the other keys.

    Args:
        bound: Upper limit of records held at once, at least 1.
        key: value -> hashable. Records with equal keys keep their order.
        per_key: Upper limit of records of one key that run at once, at least 1, the default.

    Raises:
        TypeError, ValueError: `bound` or `per_key` is out of its range.

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

    def __init__(self, bound: int, *, key: Callable[[Any], Hashable], per_key: int = 1) -> None:
        super().__init__(bound)
        self._key = key
        self._per_key = check_int("per_key", per_key, at_least=1)
        self._newest: dict[Hashable, _KeyedEntry] = {}  # the newest entry of each key, unless it has been emitted

    def may_start(self, entry: Entry) -> bool:
        """Whether the record is unfinished and among the first `per_key` of its lane."""
        if isinstance(entry, _LaneEntry):
            return entry.is_admitted and entry.results is None
        return isinstance(entry, _KeyedEntry) and entry.is_head and entry.results is None

    def successor(self, entry: Entry) -> Entry | None:
        """The record that followed this completed one in its lane and may start now, or None."""
        if isinstance(entry, _LaneEntry):
            return entry.following
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
        kind = _KeyedEntry if self._per_key == 1 else _LaneEntry
        entry = kind(element, self.arrived, self._segments[-1], key, previous)
        if isinstance(entry, _LaneEntry):
            entry.enter(previous.lane if isinstance(previous, _LaneEntry) else _Lane(self._per_key))
        self._newest[key] = entry
        return entry

    def _next(self) -> Entry:
        entry = super()._next()
        if isinstance(entry, _KeyedEntry) and self._newest.get(entry.key) is entry:
            del self._newest[entry.key]
        return entry
