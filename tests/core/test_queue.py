"""The face of the three queues. `tests/explored` has the orders inside them, in every interleaving."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import pytest

from trio_asyncio_io import StreamRecord, Watermark
from trio_asyncio_io.queues import KeyedStreamElementQueue, OrderedStreamElementQueue, UnorderedStreamElementQueue

Queue: TypeAlias = OrderedStreamElementQueue | UnorderedStreamElementQueue


@pytest.fixture(
    params=[
        OrderedStreamElementQueue,
        UnorderedStreamElementQueue,
        partial(KeyedStreamElementQueue, key=repr),
        partial(KeyedStreamElementQueue, key=lambda value: None),
    ],
    ids=["ordered", "unordered", "keyed, distinct keys", "keyed, one key"],
)
def make(request: pytest.FixtureRequest) -> Callable[[int], Queue]:
    return request.param


def drain(queue: Queue) -> list[Any]:
    """Poll all completed entries, and return their results."""
    out = []
    while queue.has_completed():
        out.extend(queue.poll().results or [])
    return out


@pytest.mark.parametrize("bound", [0, -1])
def test_a_bound_below_one_is_refused(make: Callable[[int], Queue], bound: int) -> None:
    with pytest.raises(ValueError, match=f"bound must be at least 1, got {bound}"):
        make(bound)


@pytest.mark.parametrize("bound", [1.5, float("nan"), None])
def test_a_bound_that_is_no_whole_number_is_refused(make: Callable[[Any], Queue], bound: Any) -> None:
    with pytest.raises(TypeError, match=f"bound must be a whole number, got {bound}"):
        make(bound)


def test_a_new_queue_is_empty(make: Callable[[int], Queue]) -> None:
    queue = make(1)
    assert queue.is_empty()
    assert len(queue) == 0
    assert not queue.has_completed()
    assert queue.entries() == []
    with pytest.raises(IndexError):
        queue.poll()


def test_an_entry_has_its_element_and_once_completed_its_results(make: Callable[[int], Queue]) -> None:
    entry = make(1).try_put(StreamRecord("a", 7))
    assert entry is not None
    assert entry.element == StreamRecord("a", 7)
    assert not entry.is_done
    assert entry.results is None
    entry.complete(["A"])
    assert entry.is_done
    assert entry.results == ["A"]


def test_the_first_completion_wins(make: Callable[[int], Queue]) -> None:
    queue = make(1)
    entry = queue.try_put("a")
    entry.complete(["first"])
    entry.complete(["second"])
    assert drain(queue) == ["first"]
    assert queue.is_empty()


def test_an_unfinished_entry_cannot_be_polled(make: Callable[[int], Queue]) -> None:
    queue = make(1)
    queue.try_put("a")
    assert not queue.has_completed()
    with pytest.raises(IndexError):
        queue.poll()
    assert [entry.element for entry in queue.entries()] == ["a"]


def test_an_empty_list_of_results_completes_an_entry(make: Callable[[int], Queue]) -> None:
    queue = make(1)
    queue.try_put("a").complete([])
    assert queue.poll().results == []
    assert queue.is_empty()


def test_a_full_queue_refuses_elements_and_is_unchanged(make: Callable[[int], Queue]) -> None:
    queue = make(2)
    assert queue.try_put("a") is not None
    assert queue.try_put("b") is not None
    assert queue.try_put("c") is None
    assert len(queue) == 2
    assert [entry.element for entry in queue.entries()] == ["a", "b"]


def test_a_completed_record_counts_until_it_is_polled(make: Callable[[int], Queue]) -> None:
    queue = make(1)
    queue.try_put("a").complete(["A"])
    assert queue.try_put("b") is None
    queue.poll()
    assert len(queue) == 0
    assert queue.try_put("b") is not None


def test_watermarks_do_not_count_as_records(make: Callable[[int], Queue]) -> None:
    queue = make(1)
    queue.try_put("a")
    assert queue.try_put(Watermark(1)) is not None
    assert len(queue) == 1
    assert [entry.element for entry in queue.entries()] == ["a", Watermark(1)]
    assert queue.try_put("b") is None


def test_as_many_watermarks_as_records_fit(make: Callable[[int], Queue]) -> None:
    queue = make(2)
    queue.try_put("a")
    assert queue.try_put(Watermark(1)) is not None
    assert queue.try_put(Watermark(2)) is not None
    assert queue.try_put(Watermark(3)) is None
    assert queue.try_put("b") is not None


def test_a_polled_watermark_frees_its_place_and_no_other(make: Callable[[int], Queue]) -> None:
    queue = make(1)
    for timestamp in range(3):
        assert queue.try_put(Watermark(timestamp)) is not None
        assert queue.try_put(Watermark(timestamp)) is None
        assert len(queue) == 0
        assert queue.poll().results == [Watermark(timestamp)]


def test_a_watermark_waits_for_all_records_before_it(make: Callable[[int], Queue]) -> None:
    queue = make(2)
    a, b, _ = (queue.try_put(element) for element in ("a", "b", Watermark(1)))
    a.complete(["A"])
    assert drain(queue) == ["A"]
    b.complete(["B"])
    assert drain(queue) == ["B", Watermark(1)]


def test_values_are_in_arrival_order_whatever_is_completed(make: Callable[[int], Queue]) -> None:
    elements = ["a", "b", Watermark(1), Watermark(2), "c", "d"]
    queue = make(4)
    entries = [queue.try_put(element) for element in elements]
    for position in (5, 1, 4):
        entries[position].complete([])
    assert [entry.element for entry in queue.entries()] == elements


def test_sequence_numbers_count_accepted_elements_only(make: Callable[[int], Queue]) -> None:
    queue = make(1)
    first, watermark = queue.try_put("a"), queue.try_put(Watermark(1))
    assert queue.try_put("b") is None
    first.complete([])
    drain(queue)
    assert [first.sequence, watermark.sequence, queue.try_put("c").sequence] == [0, 1, 2]


def test_falsy_and_missing_values_are_values(make: Callable[[int], Queue]) -> None:
    queue = make(4)
    for value in (None, 0, "", False):
        queue.try_put(value).complete([value])
    assert drain(queue) == [None, 0, "", False]
