"""The queues that keep the output order: plain data, without `await`.

They are for reading, and for embedding in a program that makes the calls itself: `try_put` an element, `complete` its
entry when the call has ended, and `poll` what may go out. A bound counts records.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from ._core.elements import Watermark, value_of
from ._core.queue import CompletionOrder, Entry, InputOrder, KeyOrder, Order
from ._values.checks import check_callback, check_int
from ._values.public import publish

__all__ = ["Entry", "KeyedStreamElementQueue", "OrderedStreamElementQueue", "UnorderedStreamElementQueue"]


class StreamElementQueue:
    """The common part of the three queues: an order, and its bound.

    Raises:
        TypeError, ValueError: `bound` is out of its range.
    """

    def __init__(self, bound: int, order: Order) -> None:
        self.bound = check_int("bound", bound, at_least=1)
        self._order = order
        self._records = self._watermarks = 0  # the numbers held
        self._arrived = 0

    def __len__(self) -> int:
        """The number of records held. Watermarks do not count."""
        return self._records

    def is_empty(self) -> bool:
        """Whether the queue holds neither a record nor a watermark."""
        return self._order.is_empty()

    def try_put(self, element: Any) -> Entry | None:
        """Put an element and return its entry. None if the queue is full; nothing was put then."""
        if isinstance(element, Watermark):
            if self._watermarks == self.bound:
                return None
            entry = self._order.append_watermark(element, self._arrived, 0.0)
            self._watermarks += 1
        else:
            if self._records == self.bound:
                return None
            entry = self._order.entry_type(element, value_of(element), self._arrived, 0.0)
            self._order.append(entry)
            self._records += 1
        self._arrived += 1
        return entry

    def has_completed(self) -> bool:
        """Whether an entry may be emitted."""
        return self._order.has_completed()

    def poll(self) -> Entry:
        """Remove and return the next entry that may be emitted.

        Raises:
            IndexError: No entry may be emitted yet. Check `has_completed` first.
        """
        if not self._order.has_completed():
            raise IndexError("no entry may be emitted yet")
        (entry,) = self._order.take(1)
        if entry.is_watermark:
            self._watermarks -= 1
        else:
            self._records -= 1
        return entry

    def entries(self) -> list[Entry]:
        """The entries held, in arrival order."""
        return self._order.entries()

    def may_start(self, entry: Entry) -> bool:
        """Whether the invocation of a new record may start now."""
        return self._order.may_start(entry)

    def successor(self, entry: Entry) -> Entry | None:
        """The record that waited for this entry to be completed and may start now, or None. Call it before `poll`."""
        return self._order.successor(entry)


class OrderedStreamElementQueue(StreamElementQueue):
    """A queue that emits elements in input order.

    Invariant: `poll` returns the entries in the order in which they were put. Only the head may be emitted, once it is
    completed. A watermark is completed from the start and waits for its place like a record (Flink's
    `OrderedStreamElementQueue`).

    Args:
        bound: Upper limit of records held at once, at least 1. As many watermarks may be held in addition.

    Raises:
        TypeError, ValueError: `bound` is out of its range.

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
        super().__init__(bound, InputOrder())


class UnorderedStreamElementQueue(StreamElementQueue):
    """A queue that emits records in completion order, but never across a watermark.

    Invariant: a watermark begins a segment, and only the oldest segment emits. So records of one segment may overtake
    each other, and nothing else may (Flink's `UnorderedStreamElementQueue`).

    Args:
        bound: Upper limit of records held at once, at least 1. As many watermarks may be held in addition.

    Raises:
        TypeError, ValueError: `bound` is out of its range.

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
        super().__init__(bound, CompletionOrder())


class KeyedStreamElementQueue(StreamElementQueue):
    """A queue in which the records of one key start and are emitted in input order.

    Invariant: the unfinished records of a key form a lane, and only the first of a lane may be running. So the records
    of one key complete one after another, and completion order within a segment is input order per key. Watermarks are
    walls, as in the unordered queue (Flink's keyed ordering, FLIP-519).

    A record that waits in its lane counts towards the bound, but occupies no slot. A hot key slows down only itself, as
    long as the bound has room for the other keys.

    Args:
        bound: Upper limit of records held at once, at least 1. As many watermarks may be held in addition.
        key: value -> hashable. Records with equal keys keep their order.

    Raises:
        TypeError, ValueError: `bound` is out of its range, or `key` is not callable, or async.

    Example:
        >>> queue = KeyedStreamElementQueue(3, key=lambda value: value[0])
        >>> a1, a2, b1 = (queue.try_put(value) for value in ("a1", "a2", "b1"))
        >>> [queue.may_start(entry) for entry in (a1, a2, b1)]
        [True, False, True]
        >>> a1.complete(["A1"])
        >>> queue.successor(a1) is a2
        True
    """

    def __init__(self, bound: int, *, key: Callable[[Any], Hashable]) -> None:
        super().__init__(bound, KeyOrder(check_callback("key", key)))


publish(globals())
