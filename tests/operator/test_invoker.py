"""Deadlines of invocations, and the awaitables that a call may return."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Iterator
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.support import outputs, timed_outputs
from trio_asyncio_io import (
    ElementTimeoutError,
    FixedDelay,
)
from trio_asyncio_io.testing import Recorder, Scripted, Step

NEVER = Step(math.inf)


# The deadline


async def test_the_running_attempt_is_cancelled_at_the_deadline(async_wait: Any, autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=NEVER))
    with pytest.raises(ElementTimeoutError) as caught:
        await outputs(async_wait(["a"], recorder, timeout=2.0))
    assert trio.current_time() == 2.0
    assert (recorder.cancelled, recorder.running) == (1, 0)
    assert caught.value.timeout == 2.0
    assert str(caught.value) == "the function gave no result for 'a' within its timeout of 2 s"


async def test_on_timeout_runs_after_the_attempt_has_unwound_and_before_the_slot_is_free(
    async_wait: Any, autojump_clock: MockClock
) -> None:
    async def unwind_slowly(value: str) -> str:
        try:
            await trio.sleep(math.inf if value == "a" else 1.0)
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(3.0)
        return value

    recorder = Recorder(unwind_slowly)
    on_timeout = Recorder(Scripted(default=Step(1.0, result="late")))
    out = await outputs(async_wait("ab", recorder, timeout=2.0, capacity=1, on_timeout=on_timeout))
    assert out == ["late", "b"]
    assert [(call.started, call.ended) for call in recorder.calls] == [(0.0, 5.0), (6.0, 10.0)]
    assert [(call.value, call.started, call.ended) for call in on_timeout.calls] == [("a", 5.0, 6.0)]


async def test_the_result_of_a_function_that_swallows_the_cancellation_counts(
    async_wait: Any, autojump_clock: MockClock
) -> None:
    async def ignore_cancellation(value: str) -> str:
        with trio.move_on_after(1000):
            try:
                await trio.sleep_forever()
            except trio.Cancelled:
                return value.upper()
        raise AssertionError

    async with async_wait("abc", ignore_cancellation, timeout=2.0, capacity=1) as results:
        out = [(result, trio.current_time()) async for result in results]
    assert out == [("A", 2.0), ("B", 4.0), ("C", 6.0)]
    assert (results.statistics().completed, results.statistics().timed_out) == (3, 0)


async def test_the_result_of_a_late_shielded_function_counts(async_wait: Any, autojump_clock: MockClock) -> None:
    async def shielded(value: str) -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(5.0)
        return value.upper()

    assert await timed_outputs(async_wait("ab", shielded, timeout=2.0, capacity=1)) == [("A", 5.0), ("B", 10.0)]


async def test_a_call_that_ends_exactly_at_the_deadline_completes_or_times_out_once(
    async_wait: Any, autojump_clock: MockClock
) -> None:
    on_timeout = Recorder(Scripted(default=Step(result="late")))
    async with async_wait(range(50), Scripted(default=Step(2.0)), timeout=2.0, on_timeout=on_timeout) as results:
        out = [result async for result in results]
    statistics = results.statistics()
    assert len(out) == 50
    assert statistics.completed + statistics.timed_out == 50
    assert out.count("late") == len(on_timeout.calls) == statistics.timed_out


async def test_the_timeout_does_not_include_the_wait_for_a_slot(async_wait: Any, autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=Step(3.0)))
    out = await timed_outputs(async_wait("abc", recorder, timeout=4.0, capacity=1))
    assert out == [("a", 3.0), ("b", 6.0), ("c", 9.0)]
    assert recorder.cancelled == 0


async def test_the_deadline_covers_all_attempts_and_backoffs(async_wait: Any, autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=Step(1.0, error=OSError)))
    with pytest.raises(ElementTimeoutError):
        await outputs(async_wait(["a"], recorder, timeout=6.5, retry=FixedDelay(100, 2.0)))
    assert trio.current_time() == 6.5
    assert [(call.started, call.ended) for call in recorder.calls] == [(0.0, 1.0), (3.0, 4.0), (6.0, 6.5)]


async def test_a_backoff_beyond_the_deadline_times_out_at_once(async_wait: Any, autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=Step(1.0, error=OSError)))
    with pytest.raises(ElementTimeoutError):
        await outputs(async_wait(["a"], recorder, timeout=5.0, retry=FixedDelay(100, 8.0)))
    assert trio.current_time() == 1.0
    assert (len(recorder.calls), recorder.cancelled) == (1, 0)


async def test_an_infinite_timeout_is_no_deadline(async_wait: Any, autojump_clock: MockClock) -> None:
    assert await timed_outputs(async_wait(["a"], Scripted(default=Step(1e6)), timeout=math.inf)) == [("a", 1e6)]


async def test_with_a_timeout_of_zero_only_calls_without_a_wait_complete(
    async_wait: Any, autojump_clock: MockClock
) -> None:
    async def quick(value: str) -> str:
        return value.upper()

    assert await outputs(async_wait("ab", quick, timeout=0)) == ["A", "B"]
    recorder = Recorder(Scripted(default=NEVER))
    assert await outputs(async_wait("ab", recorder, timeout=0, on_error="skip")) == []
    assert recorder.cancelled == 2
    assert trio.current_time() == 0.0


async def test_a_timeout_is_not_retried(async_wait: Any, autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=NEVER))
    assert await outputs(async_wait(["a"], recorder, timeout=2.0, retry=FixedDelay(3, 0.5), on_error="skip")) == []
    assert len(recorder.calls) == 1


async def test_an_exception_raised_during_cancellation_is_a_failure(async_wait: Any, autojump_clock: MockClock) -> None:
    error = OSError("cleanup failed")

    async def raise_when_cancelled(value: str) -> str:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            raise error from None
        raise AssertionError

    with pytest.raises(OSError, match="cleanup") as caught:
        await outputs(async_wait(["a"], raise_when_cancelled, timeout=2.0))
    assert caught.value is error


# Awaitables


async def test_a_call_may_return_any_awaitable(async_wait: Any) -> None:
    class Later:
        def __await__(self) -> Iterator[Any]:
            return Scripted()("result").__await__()

    def call(value: str) -> Awaitable[str]:
        return Later()

    assert await outputs(async_wait(["a"], call, timeout=2.0)) == ["result"]


async def test_an_exception_raised_before_the_awaitable_exists_is_a_failure_of_the_element(async_wait: Any) -> None:
    error = ValueError("bad value")

    def call(value: str) -> Awaitable[str]:
        raise error

    with pytest.raises(ValueError, match="bad value") as caught:
        await outputs(async_wait(["a"], call, timeout=2.0))
    assert caught.value is error
    assert await outputs(async_wait(["a"], call, timeout=2.0, on_error="skip")) == []
