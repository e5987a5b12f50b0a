"""The queues that keep the output order: plain data, without `await`.

The operator has one of them. They are public for reading, and for embedding in a program that makes the calls itself:
`try_put` an element, `complete` its entry when the call has ended, and `poll` what may go out. A bound counts records.
"""

from __future__ import annotations

from ._core.queue import Entry, KeyedStreamElementQueue, OrderedStreamElementQueue, UnorderedStreamElementQueue
from ._public import publish

__all__ = ["Entry", "KeyedStreamElementQueue", "OrderedStreamElementQueue", "UnorderedStreamElementQueue"]

publish(globals())
