"""Compare the three queues with a list, for random sequences of put, complete and poll."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from trio_asyncio_io import StreamRecord, Watermark
from trio_asyncio_io.queues import KeyedStreamElementQueue, OrderedStreamElementQueue, UnorderedStreamElementQueue

QUEUES = {
    "ordered": OrderedStreamElementQueue,
    "unordered": UnorderedStreamElementQueue,
    "keyed": lambda bound: KeyedStreamElementQueue(bound, key=lambda value: value[0]),
}


@dataclass(eq=False)
class ModelEntry:
    """The model of one entry."""

    entry: Any
    element: Any
    key: Any
    is_done: bool

    @property
    def is_watermark(self) -> bool:
        return isinstance(self.element, Watermark)


class Model:
    """A queue as two lists: the entries held, and the completed ones in the order in which they may overtake."""

    def __init__(self, mode: str, bound: int) -> None:
        self.mode = mode
        self.bound = bound
        self.held: list[ModelEntry] = []
        self.done: list[ModelEntry] = []

    def has_room_for(self, element: Any) -> bool:
        is_watermark = isinstance(element, Watermark)
        return sum(entry.is_watermark == is_watermark for entry in self.held) < self.bound

    def complete(self, completed: ModelEntry) -> None:
        completed.is_done = True
        line = [each for each in self.held if each.key == completed.key] if self.mode == "keyed" else [completed]
        for each in takewhile(lambda each: each.is_done, line):
            if each not in self.done:
                self.done.append(each)

    def next_out(self) -> ModelEntry | None:
        if not self.held:
            return None
        head = self.held[0]
        if self.mode == "ordered" or head.is_watermark:
            return head if head.is_done else None
        segment = list(takewhile(lambda each: not each.is_watermark, self.held))
        return next((each for each in self.done if each in segment), None)


class QueueMachine(RuleBasedStateMachine):
    """Applies the same operations to a queue and its model."""

    mode: str

    @initialize(bound=st.integers(1, 5))
    def make(self, bound: int) -> None:
        self.queue = QUEUES[self.mode](bound)
        self.model = Model(self.mode, bound)
        self.number = 0

    def _put(self, element: Any, key: Any) -> None:
        had_room = self.model.has_room_for(element)
        entry = self.queue.try_put(element)
        assert (entry is not None) == had_room
        if entry is not None:
            assert entry.sequence == self.number
            self.number += 1
            self.model.held.append(ModelEntry(entry, element, key, entry.is_done))

    @rule(key=st.sampled_from("abc"), is_bare=st.booleans())
    def put_a_record(self, key: str, is_bare: bool) -> None:
        value = (key, self.number)
        self._put(value if is_bare else StreamRecord(value, self.number), key)

    @rule()
    def put_a_watermark(self) -> None:
        self._put(Watermark(self.number), None)

    @precondition(lambda self: any(not each.is_done for each in self.model.held))
    @rule(data=st.data())
    def complete_one(self, data: st.DataObject) -> None:
        completed = data.draw(st.sampled_from([each for each in self.model.held if not each.is_done]))
        self.model.complete(completed)
        completed.entry.complete([completed.element])
        completed.entry.complete(["too late"])

    @rule()
    def poll(self) -> None:
        expected = self.model.next_out()
        if expected is None:
            with pytest.raises(IndexError):
                self.queue.poll()
            return
        entry = self.queue.poll()
        assert entry is expected.entry
        assert entry.results == [expected.element]
        self.model.held.remove(expected)
        if expected in self.model.done:
            self.model.done.remove(expected)

    @invariant()
    def the_queue_holds_what_the_model_holds(self) -> None:
        if not hasattr(self, "queue"):
            return
        held = self.model.held
        assert self.queue.values() == [each.element for each in held]
        assert self.queue.entries() == [each.entry for each in held]
        assert len(self.queue) == sum(not each.is_watermark for each in held)
        assert self.queue.is_empty() == (not held)
        assert self.queue.has_completed() == (self.model.next_out() is not None)

    @invariant()
    def a_record_may_start_if_none_of_its_key_is_unfinished_before_it(self) -> None:
        if not hasattr(self, "queue"):
            return
        unfinished = [each for each in self.model.held if not each.is_done]
        for each in unfinished:
            first = next(other for other in unfinished if other.key == each.key)
            assert self.queue.may_start(each.entry) == (self.mode != "keyed" or each is first)

    def teardown(self) -> None:
        """Complete the remaining entries; all of them must be emitted."""
        for each in list(self.model.held):
            if not each.is_done:
                each.entry.complete([each.element])
        out = 0
        while self.queue.has_completed():
            self.queue.poll()
            out += 1
        assert out == len(self.model.held)
        assert self.queue.is_empty()


class OrderedQueueMachine(QueueMachine):
    mode = "ordered"


class UnorderedQueueMachine(QueueMachine):
    mode = "unordered"


class KeyedQueueMachine(QueueMachine):
    mode = "keyed"


TestOrderedQueue = OrderedQueueMachine.TestCase
TestUnorderedQueue = UnorderedQueueMachine.TestCase
TestKeyedQueue = KeyedQueueMachine.TestCase
for case in (TestOrderedQueue, TestUnorderedQueue, TestKeyedQueue):
    case.settings = settings(stateful_step_count=40)
