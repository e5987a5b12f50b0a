"""What the keyed queue adds to the face of the queues, see test_queue.py."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from trio_asyncio_io import StreamRecord
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


def test_the_key_is_computed_from_the_value_of_a_record(queue: KeyedStreamElementQueue) -> None:
    first, second = put(queue, StreamRecord("a1", 7), "a2")
    assert queue.may_start(first)
    assert not queue.may_start(second)


async def first_character(value: str) -> str:
    return value[0]


@pytest.mark.parametrize(
    ("key", "message"), [(0, "key must be callable, got 0"), (first_character, "key must not be async")]
)
def test_a_key_is_a_function_that_is_not_async(key: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        KeyedStreamElementQueue(8, key=key)


@pytest.mark.parametrize(("key", "error"), [(lambda value: [value], "unhashable"), (lambda value: value[9], "index")])
def test_a_key_function_that_raises_leaves_the_queue_unchanged(key: Any, error: str) -> None:
    queue = KeyedStreamElementQueue(1, key=key)
    with pytest.raises((TypeError, IndexError), match=error):
        queue.try_put("a1")
    assert queue.is_empty()
    assert queue.entries() == []


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
