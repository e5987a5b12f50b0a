"""The unordered queue, driven by hand; what it shares with the others is in test_queue.py."""

from __future__ import annotations

from itertools import permutations

import pytest

from trio_asyncio_io import UnorderedStreamElementQueue, Watermark


@pytest.mark.parametrize("completion", list(permutations("abc")))
def test_the_output_is_in_completion_order(completion: tuple[str, ...]) -> None:
    queue = UnorderedStreamElementQueue(3)
    entries = {value: queue.try_put(value) for value in "abc"}
    for value in completion:
        entries[value].complete([value.upper()])
    assert [queue.poll().element for _ in range(3)] == list(completion)


def test_records_behind_a_watermark_are_emitted_in_completion_order_after_it() -> None:
    queue = UnorderedStreamElementQueue(4)
    a, _, b, c = (queue.try_put(element) for element in ("a", Watermark(1), "b", "c"))
    c.complete(["C"])
    b.complete(["B"])
    a.complete(["A"])
    assert [queue.poll().element for _ in range(4)] == ["a", Watermark(1), "c", "b"]


def test_a_segment_that_was_empty_in_between_is_still_one_segment() -> None:
    """Without a watermark there is one segment, however often it was empty in between."""
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
