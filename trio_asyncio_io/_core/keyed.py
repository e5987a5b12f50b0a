"""The keyed queue: output in input order per key, and one invocation per key at a time."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

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

    def _next(self) -> Entry:
        entry = super()._next()
        if isinstance(entry, _KeyedEntry) and self._newest.get(entry.key) is entry:
            del self._newest[entry.key]
        return entry
