"""The ordered queue, driven by hand; what it shares with the others is in test_queue.py."""

from __future__ import annotations

from itertools import permutations

import pytest

from trio_asyncio_io import OrderedStreamElementQueue


@pytest.mark.parametrize("completion", list(permutations("abc")))
def test_the_output_is_in_input_order_whatever_completes_first(completion: tuple[str, ...]) -> None:
    queue = OrderedStreamElementQueue(3)
    entries = {value: queue.try_put(value) for value in "abc"}
    out = []
    for value in completion:
        entries[value].complete([value.upper()])
        while queue.has_completed():
            out.extend(queue.poll().results)
    assert out == ["A", "B", "C"]


def test_completed_records_wait_for_a_straggler_at_the_head() -> None:
    queue = OrderedStreamElementQueue(3)
    a, b, c = (queue.try_put(value) for value in "abc")
    c.complete(["C"])
    b.complete(["B"])
    assert not queue.has_completed()
    a.complete(["A"])
    assert [queue.poll().element for _ in range(3)] == ["a", "b", "c"]
