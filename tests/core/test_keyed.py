"""The keyed queue, driven by hand; what it shares with the others is in test_queue.py."""

from __future__ import annotations

from typing import Any

import pytest

from trio_asyncio_io import KeyedStreamElementQueue, StreamRecord, Watermark


@pytest.fixture
def queue() -> KeyedStreamElementQueue:
    """Values such as "a1": the letter is the key."""
    return KeyedStreamElementQueue(8, key=lambda value: value[0])


def put(queue: KeyedStreamElementQueue, *elements: Any) -> list[Any]:
    return [queue.try_put(element) for element in elements]


def test_of_each_key_only_the_oldest_record_that_is_not_done_may_start(queue: KeyedStreamElementQueue) -> None:
    entries = put(queue, "a1", "a2", "b1", "b2", "c1")
    assert [queue.may_start(entry) for entry in entries] == [True, False, True, False, True]


def test_the_successor_is_the_next_record_of_the_key(queue: KeyedStreamElementQueue) -> None:
    a1, _, a2 = put(queue, "a1", "b1", "a2")
    a1.complete([])
    assert queue.successor(a1) is a2
    assert queue.may_start(a2)
    a2.complete([])
    assert queue.successor(a2) is None


def test_one_key_goes_out_in_order_even_if_a_later_record_was_done_first(queue: KeyedStreamElementQueue) -> None:
    """As it is when a snapshot holds a result for the later one already."""
    a1, a2, b1 = put(queue, "a1", "a2", "b1")
    a2.complete([])
    assert not queue.has_completed()
    b1.complete([])
    a1.complete([])
    assert [queue.poll().element for _ in range(3)] == ["b1", "a1", "a2"]


def test_other_keys_are_not_held_back(queue: KeyedStreamElementQueue) -> None:
    _, b1, c1 = put(queue, "a1", "b1", "c1")
    c1.complete([])
    b1.complete([])
    assert [queue.poll().element for _ in range(2)] == ["c1", "b1"]


def test_a_record_of_a_key_that_is_done_but_not_out_may_start(queue: KeyedStreamElementQueue) -> None:
    (a1,) = put(queue, "a1")
    a1.complete([])
    (a2,) = put(queue, "a2")
    assert queue.may_start(a2)
    a2.complete([])
    assert [queue.poll().element for _ in range(2)] == ["a1", "a2"]


def test_a_key_keeps_its_order_across_a_watermark(queue: KeyedStreamElementQueue) -> None:
    a1, _, a2 = put(queue, "a1", Watermark(1), "a2")
    assert not queue.may_start(a2)
    a1.complete([])
    assert queue.successor(a1) is a2
    a2.complete([])
    assert [queue.poll().element for _ in range(3)] == ["a1", Watermark(1), "a2"]


def test_the_key_is_told_from_the_value_of_a_record(queue: KeyedStreamElementQueue) -> None:
    first, second = put(queue, StreamRecord("a1", 7), "a2")
    assert queue.may_start(first)
    assert not queue.may_start(second)


@pytest.mark.parametrize(("key", "error"), [(lambda value: [value], "unhashable"), (lambda value: value[9], "index")])
def test_a_key_that_raises_leaves_the_queue_as_it_was(key: Any, error: str) -> None:
    queue = KeyedStreamElementQueue(1, key=key)
    with pytest.raises((TypeError, IndexError), match=error):
        queue.try_put("a1")
    assert queue.is_empty()
    assert queue.values() == []


def test_a_key_whose_records_are_all_out_is_forgotten(queue: KeyedStreamElementQueue) -> None:
    """Memory is bounded by the buffer, however many keys there are."""
    for number in range(1_000):
        (entry,) = put(queue, chr(number) + "1")
        entry.complete([])
        queue.poll()
    assert not queue._lanes
