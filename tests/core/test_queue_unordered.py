"""The unordered queue. Tests of all three queues are in test_queue.py."""

from __future__ import annotations

from trio_asyncio_io import Watermark
from trio_asyncio_io.queues import UnorderedStreamElementQueue


def test_the_output_is_in_completion_order() -> None:
    queue = UnorderedStreamElementQueue(3)
    entries = {value: queue.try_put(value) for value in "abc"}
    for value in "cab":
        entries[value].complete([value.upper()])
    assert [queue.poll().element for _ in range(3)] == ["c", "a", "b"]


def test_records_behind_a_watermark_are_emitted_in_completion_order_after_it() -> None:
    queue = UnorderedStreamElementQueue(4)
    a, _, b, c = (queue.try_put(element) for element in ("a", Watermark(1), "b", "c"))
    c.complete(["C"])
    b.complete(["B"])
    a.complete(["A"])
    assert [queue.poll().element for _ in range(4)] == ["a", Watermark(1), "c", "b"]


def test_a_segment_that_was_empty_in_between_is_still_one_segment() -> None:
    """Without a watermark there is only one segment."""
    queue = UnorderedStreamElementQueue(2)
    queue.try_put("a").complete(["A"])
    queue.poll()
    b, c = queue.try_put("b"), queue.try_put("c")
    c.complete(["C"])
    assert queue.poll().element == "c"
    b.complete(["B"])
    assert queue.poll().element == "b"


def test_a_watermark_behind_an_empty_segment_is_emitted_immediately() -> None:
    queue = UnorderedStreamElementQueue(2)
    queue.try_put("a").complete(["A"])
    queue.poll()
    queue.try_put(Watermark(1))
    assert queue.poll().element == Watermark(1)
    assert queue.is_empty()
