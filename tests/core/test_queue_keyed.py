"""The keyed queue. Tests of all three queues are in test_queue.py."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from trio_asyncio_io import StreamRecord, Watermark
from trio_asyncio_io.queues import KeyedStreamElementQueue


@pytest.fixture
def queue() -> KeyedStreamElementQueue:
    """A queue for values such as "a1", whose first character is the key."""
    return KeyedStreamElementQueue(8, key=lambda value: value[0])


def put(queue: KeyedStreamElementQueue, *elements: Any) -> list[Any]:
    return [queue.try_put(element) for element in elements]


def test_only_the_oldest_unfinished_record_of_a_key_may_start(queue: KeyedStreamElementQueue) -> None:
    entries = put(queue, "a1", "a2", "b1", "b2", "c1")
    assert [queue.may_start(entry) for entry in entries] == [True, False, True, False, True]


def test_the_successor_is_the_next_record_of_the_key(queue: KeyedStreamElementQueue) -> None:
    a1, _, a2 = put(queue, "a1", "b1", "a2")
    a1.complete([])
    assert queue.successor(a1) is a2
    assert queue.may_start(a2)
    a2.complete([])
    assert queue.successor(a2) is None


def test_a_record_that_completes_before_its_turn_has_no_successor(queue: KeyedStreamElementQueue) -> None:
    a1, a2, a3 = put(queue, "a1", "a2", "a3")
    a2.complete([])
    assert queue.successor(a2) is None
    a1.complete([])
    assert queue.successor(a1) is a3


def test_one_key_is_emitted_in_order_even_if_a_later_record_completes_first(queue: KeyedStreamElementQueue) -> None:
    """For example, because a snapshot has a result for the later record."""
    a1, a2, b1 = put(queue, "a1", "a2", "b1")
    a2.complete([])
    assert not queue.has_completed()
    b1.complete([])
    a1.complete([])
    assert [queue.poll().element for _ in range(3)] == ["b1", "a1", "a2"]


def test_other_keys_do_not_wait(queue: KeyedStreamElementQueue) -> None:
    _, b1, c1 = put(queue, "a1", "b1", "c1")
    c1.complete([])
    b1.complete([])
    assert [queue.poll().element for _ in range(2)] == ["c1", "b1"]


def test_a_record_may_start_while_its_completed_predecessor_is_not_emitted(queue: KeyedStreamElementQueue) -> None:
    (a1,) = put(queue, "a1")
    a1.complete([])
    (a2,) = put(queue, "a2")
    assert queue.may_start(a2)
    a2.complete([])
    assert [queue.poll().element for _ in range(2)] == ["a1", "a2"]


def test_the_order_of_a_key_holds_across_a_watermark(queue: KeyedStreamElementQueue) -> None:
    a1, _, a2 = put(queue, "a1", Watermark(1), "a2")
    assert not queue.may_start(a2)
    a1.complete([])
    assert queue.successor(a1) is a2
    a2.complete([])
    assert [queue.poll().element for _ in range(3)] == ["a1", Watermark(1), "a2"]


def test_the_key_is_computed_from_the_value_of_a_record(queue: KeyedStreamElementQueue) -> None:
    first, second = put(queue, StreamRecord("a1", 7), "a2")
    assert queue.may_start(first)
    assert not queue.may_start(second)


@pytest.mark.parametrize(("key", "error"), [(lambda value: [value], "unhashable"), (lambda value: value[9], "index")])
def test_a_key_function_that_raises_leaves_the_queue_unchanged(key: Any, error: str) -> None:
    queue = KeyedStreamElementQueue(1, key=key)
    with pytest.raises((TypeError, IndexError), match=error):
        queue.try_put("a1")
    assert queue.is_empty()
    assert queue.values() == []


def test_a_key_without_records_is_released() -> None:
    """The buffer limits memory, however many keys there are."""

    class Key:
        pass

    key = Key()
    released = weakref.ref(key)
    queue = KeyedStreamElementQueue(1, key=lambda value: value)
    queue.try_put(key).complete([])
    del key
    assert released() is not None
    queue.poll()
    gc.collect()
    assert released() is None
