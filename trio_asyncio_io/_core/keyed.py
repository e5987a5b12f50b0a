"""The keyed queue: out in the order of arrival per key, and one invocation per key at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias

from .describe import describe
from .elements import value_of
from .queue import Entry
from .unordered import Segment, SegmentEntry, UnorderedStreamElementQueue

__all__ = ["KeyedStreamElementQueue"]

_Line: TypeAlias = "deque[_KeyedEntry]"


class _KeyedEntry(SegmentEntry):
    """An entry that goes out only after the older ones of its key."""

    __slots__ = ("key", "line")

    def __init__(self, element: Any, sequence: int, segment: Segment, key: Hashable, line: _Line) -> None:
        super().__init__(element, sequence, segment)
        self.key = key
        self.line = line
        line.append(self)

    def complete(self, results: Sequence[Any]) -> None:
        if self.results is None:
            self.results = results
            while self.line and self.line[0].results is not None:
                self.line.popleft().leave_waiting()


class KeyedStreamElementQueue(UnorderedStreamElementQueue):
    """A queue in which the records of one key start, are done and go out in the order of their arrival.

    Invariant: the records of a key that have not gone to the done side stand in a line, and only the head
    of a line may be running. As one key's records are done one after the other, completion order within a
    segment is arrival order per key, and what the unordered queue promises about watermarks holds here
    without another word (Flink's keyed ordering, FLIP-519).

    A record that waits in its line holds a place in the bound, not a slot: a hot key slows down only
    itself, for as long as the bound has room for the others.

    Args:
        bound: Most records held at once, at least 1.
        key: value -> hashable: which records must keep their order.

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
        self._lines: dict[Hashable, _Line] = {}

    def may_start(self, entry: Entry) -> bool:
        """Whether the record stands at the head of its line."""
        return isinstance(entry, _KeyedEntry) and bool(entry.line) and entry.line[0] is entry

    def successor(self, entry: Entry) -> Entry | None:
        """The record that stood behind this one in its line, which may start now that this one is done."""
        return entry.line[0] if isinstance(entry, _KeyedEntry) and entry.line else None

    def _admit_record(self, element: Any) -> Entry:
        key = self._key(value_of(element))
        try:
            line = self._lines.setdefault(key, deque())
        except TypeError as error:
            raise TypeError(
                f"key returned an unhashable value, {describe(key)}, for {describe(value_of(element))}: "
                "return a string, a number or a tuple of them"
            ) from error
        return _KeyedEntry(element, self.arrived, self._segments[-1], key, line)

    def _next(self) -> Entry:
        entry = super()._next()
        if isinstance(entry, _KeyedEntry) and not entry.line and self._lines.get(entry.key) is entry.line:
            del self._lines[entry.key]
        return entry
