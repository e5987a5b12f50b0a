"""The ordered queue, driven by hand; what it shares with the others is in test_queue.py."""

from __future__ import annotations

from itertools import permutations

import pytest

from trio_asyncio_io import OrderedStreamElementQueue


@pytest.mark.parametrize("completion", list(permutations("abc")))
def test_whatever_is_done_first_the_output_has_the_order_of_the_input(completion: tuple[str, ...]) -> None:
    queue = OrderedStreamElementQueue(3)
    entries = {value: queue.try_put(value) for value in "abc"}
    out = []
    for value in completion:
        entries[value].complete([value.upper()])
        while queue.has_completed():
            out.extend(queue.poll().results)
    assert out == ["A", "B", "C"]


def test_a_straggler_at_the_head_holds_back_what_is_done() -> None:
    queue = OrderedStreamElementQueue(3)
    a, b, c = (queue.try_put(value) for value in "abc")
    c.complete(["C"])
    b.complete(["B"])
    assert not queue.has_completed()
    a.complete(["A"])
    assert [queue.poll().element for _ in range(3)] == ["a", "b", "c"]
