"""The ordered queue. Tests of all three queues are in test_queue.py."""

from __future__ import annotations

from trio_asyncio_io.queues import OrderedStreamElementQueue


def test_completed_records_wait_for_a_straggler_at_the_head() -> None:
    queue = OrderedStreamElementQueue(3)
    a, b, c = (queue.try_put(value) for value in "abc")
    c.complete(["C"])
    b.complete(["B"])
    assert not queue.has_completed()
    a.complete(["A"])
    assert [queue.poll().element for _ in range(3)] == ["a", "b", "c"]
