"""The keyed queue: output in input order per key, and one invocation per key at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias

from .describe import describe
from .elements import value_of
from .queue import Entry
from .unordered import Segment, SegmentEntry, UnorderedStreamElementQueue

__all__ = ["KeyedStreamElementQueue"]

# The unfinished entries of one key, in arrival order
_Lane: TypeAlias = "deque[_KeyedEntry]"


class _KeyedEntry(SegmentEntry):
    """An entry that is emitted after the older entries of its key."""

    __slots__ = ("key", "lane")

    def __init__(self, element: Any, sequence: int, segment: Segment, key: Hashable, lane: _Lane) -> None:
        super().__init__(element, sequence, segment)
        self.key = key
        self.lane = lane
        lane.append(self)

    def complete(self, results: Sequence[Any]) -> None:
        if self.results is None:
            self.results = results
            while self.lane and self.lane[0].results is not None:
                self.lane.popleft().move_to_completed()


class KeyedStreamElementQueue(UnorderedStreamElementQueue):
    """A queue in which the records of one key start, complete and are emitted in input order.

    Invariant: the unfinished records of a key form a lane, and only the head of a lane may be running. So the records
    of one key complete one after another, and completion order within a segment is input order per key. Watermarks are
    walls, as in the unordered queue (Flink's keyed ordering, FLIP-519).

    A record that waits in its lane counts towards the bound, but occupies no slot. A hot key slows down only itself, as
    long as the bound has room for the other keys.

    Args:
        bound: Upper limit of records held at once, at least 1.
        key: value -> hashable. Records with equal keys keep their order.

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
        self._lanes: dict[Hashable, _Lane] = {}

    def may_start(self, entry: Entry) -> bool:
        """Whether the record is the head of its lane."""
        return isinstance(entry, _KeyedEntry) and bool(entry.lane) and entry.lane[0] is entry

    def successor(self, entry: Entry) -> Entry | None:
        """The record that followed this completed one in its lane and may start now, or None."""
        return entry.lane[0] if isinstance(entry, _KeyedEntry) and entry.lane else None

    def _admit_record(self, element: Any) -> Entry:
        key = self._key(value_of(element))
        try:
            lane = self._lanes.setdefault(key, deque())
        except TypeError as error:
            raise TypeError(
                f"key returned an unhashable value, {describe(key)}, for {describe(value_of(element))}: "
                "return a string, a number or a tuple of them"
            ) from error
        return _KeyedEntry(element, self.arrived, self._segments[-1], key, lane)

    def _next(self) -> Entry:
        entry = super()._next()
        if isinstance(entry, _KeyedEntry) and not entry.lane and self._lanes.get(entry.key) is entry.lane:
            del self._lanes[entry.key]
        return entry
