"""single_flight: which calls share a request, and what cancellation does."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.support import outputs
from trio_asyncio_io import FixedDelay, unordered_wait
from trio_asyncio_io.policies import cached, single_flight
from trio_asyncio_io.testing import Recorder, Scripted, Step

NothingLeft = Callable[[], AbstractContextManager[None]]


async def test_concurrent_calls_with_one_key_are_one_call(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=Step(2.0)))
    function = single_flight(recorder)
    out = await outputs(unordered_wait("aaabba", function, timeout=5.0, capacity=6))
    assert sorted(out) == list("aaaabb")
    assert trio.current_time() == 2.0
    assert sorted(recorder.values) == ["a", "b"]
    assert (function.calls, function.shared) == (2, 4)


async def test_nothing_is_cached_after_the_call(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=Step(2.0)))
    await outputs(unordered_wait("aa", single_flight(recorder), timeout=5.0, capacity=1))
    assert recorder.values == ["a", "a"]


async def test_an_exception_is_shared(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=Step(2.0, error=OSError("busy"))))
    async with unordered_wait("aaa", single_flight(recorder), timeout=5.0, on_error="skip") as results:
        assert [result async for result in results] == []
    assert len(recorder.calls) == 1
    assert results.statistics().failed == 3


async def test_a_shared_exception_can_be_retried(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted({"a": [Step(1.0, error=OSError), Step(1.0)]}))
    function = single_flight(recorder)
    assert await outputs(unordered_wait("aaa", function, timeout=5.0, retry=FixedDelay(1, 1.0))) == ["a"] * 3
    assert len(recorder.calls) == 2


async def test_the_order_of_composition_is_the_meaning(autojump_clock: MockClock) -> None:
    """cached around single_flight makes one call per key, both for concurrent and for later callers."""
    recorder = Recorder(Scripted(default=Step(1.0)))
    await outputs(unordered_wait("abab" * 10, cached(single_flight(recorder)), timeout=5.0, capacity=7))
    assert sorted(recorder.values) == ["a", "b"]


async def ends_of(function: Any, *patiences: float) -> list[Any]:
    """The instants at which the callers got their results. Each is cancelled after its patience."""
    ends: list[Any] = [None] * len(patiences)

    async def call(number: int, patience: float) -> None:
        with trio.move_on_after(patience):
            await function("a")
            ends[number] = trio.current_time()

    async with trio.open_nursery() as nursery:
        for number, patience in enumerate(patiences):
            nursery.start_soon(call, number, patience)
            await wait_all_tasks_blocked()
    return ends


async def test_the_call_goes_on_without_the_caller_that_started_it(
    autojump_clock: MockClock, nothing_left: NothingLeft
) -> None:
    recorder = Recorder(Scripted(default=Step(5.0)))
    with nothing_left():
        assert await ends_of(single_flight(recorder), 3.0, math.inf, math.inf) == [None, 5.0, 5.0]
    assert [(call.started, call.ended, call.cancelled) for call in recorder.calls] == [(0.0, 5.0, False)]


async def test_the_last_caller_cancels_the_call(autojump_clock: MockClock, nothing_left: NothingLeft) -> None:
    recorder = Recorder(Scripted(default=Step(5.0)))
    with nothing_left():
        assert await ends_of(single_flight(recorder), 3.0, 1.0, 2.0) == [None, None, None]
    assert [(call.ended, call.cancelled) for call in recorder.calls] == [(3.0, True)]


async def test_later_callers_share_the_call_after_one_was_cancelled(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=Step(5.0)))
    function = single_flight(recorder)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(function, "a")
        with trio.move_on_after(1.0):
            await function("a")
        nursery.start_soon(function, "a")
    assert len(recorder.calls) == 1
    assert (function.calls, function.shared) == (1, 2)
    assert trio.current_time() == 5.0


async def test_a_caller_that_arrives_while_a_call_unwinds_starts_a_new_one(autojump_clock: MockClock) -> None:
    calls = []

    async def slow_to_unwind(value: str) -> str:
        calls.append(trio.current_time())
        try:
            await trio.sleep(5.0)
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(2.0)
        return value

    function = single_flight(slow_to_unwind)

    async def call_later() -> None:
        await trio.sleep(2.0)
        assert await function("a") == "a"

    async with trio.open_nursery() as nursery:
        nursery.start_soon(call_later)
        with trio.move_on_after(1.0):
            await function("a")
        assert trio.current_time() == 3.0
    assert calls == [0.0, 2.0]
    assert trio.current_time() == 9.0
    assert function._in_flight == {}


async def test_no_task_is_left_when_the_operator_stops(autojump_clock: MockClock, nothing_left: NothingLeft) -> None:
    recorder = Recorder(Scripted({"a": Step(1.0, error=OSError("busy"))}, default=Step(math.inf)))
    with nothing_left(), pytest.raises(OSError, match="busy"):
        await outputs(unordered_wait("abbc", single_flight(recorder), timeout=math.inf))
    assert recorder.running == 0
    assert recorder.cancelled == 2


@pytest.mark.parametrize("callers", [1, 3])
async def test_callers_in_a_cancelled_scope_start_no_call(callers: int, nothing_left: NothingLeft) -> None:
    recorder = Recorder(Scripted())
    function = single_flight(recorder)
    with nothing_left(), trio.CancelScope() as scope:
        scope.cancel()
        async with trio.open_nursery() as nursery:
            for _ in range(callers):
                nursery.start_soon(function, "a")
    assert scope.cancelled_caught
    assert recorder.values == []
    assert function.calls == 0
    assert await function("a") == "a"
