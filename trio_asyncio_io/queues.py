"""The queues that keep the output order: plain data, without `await`.

The operator has one of them. They are public for reading, and for embedding in a program that makes the calls itself:
`try_put` an element, `complete` its entry when the call has ended, and `poll` what may go out. A bound counts records.
"""

from __future__ import annotations

from ._addresses import publish
from ._core.keyed import KeyedStreamElementQueue
from ._core.ordered import OrderedStreamElementQueue
from ._core.queue import Entry
from ._core.unordered import UnorderedStreamElementQueue

__all__ = ["Entry", "KeyedStreamElementQueue", "OrderedStreamElementQueue", "UnorderedStreamElementQueue"]

publish(globals())
