"""The queues, as an embedding program uses them."""

from collections.abc import Sequence
from typing import Any, assert_type

from trio_asyncio_io import StreamRecord, Watermark
from trio_asyncio_io.queues import (
    Entry,
    KeyedStreamElementQueue,
    OrderedStreamElementQueue,
    UnorderedStreamElementQueue,
)


def drive(queue: OrderedStreamElementQueue | UnorderedStreamElementQueue | KeyedStreamElementQueue) -> None:
    entry = queue.try_put(StreamRecord("a", 1))
    if entry is None:
        return
    assert_type(entry.is_done, bool)
    assert_type(entry.results, Sequence[Any] | None)
    entry.complete(["A"])
    queue.try_put(Watermark(1))
    while queue.has_completed():
        assert_type(queue.poll().sequence, int)
    assert_type(queue.entries(), list[Entry])
    assert_type(queue.is_empty(), bool)
    assert_type(len(queue), int)


drive(OrderedStreamElementQueue(10))
drive(UnorderedStreamElementQueue(10))
drive(KeyedStreamElementQueue(10, key=len))
KeyedStreamElementQueue(10)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
