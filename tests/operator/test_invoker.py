"""The invocation: its deadline, and whatever is awaitable."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Iterator
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from trio_asyncio_io import (
    ElementTimeoutError,
    FixedDelay,
)
from trio_asyncio_io.testing import Recorder, Scripted, Step

NEVER = Step(math.inf)


async def outputs(operator: Any) -> list[Any]:
    async with operator as results:
        return [result async for result in results]


async def outputs_at(operator: Any) -> list[tuple[Any, float]]:
    """Each output with the instant at which it was received."""
    async with operator as results:
        return [(result, trio.current_time()) async for result in results]


# The deadline.


async def test_at_the_deadline_the_running_attempt_is_cancelled(wait: Any, autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=NEVER))
    with pytest.raises(ElementTimeoutError) as caught:
        await outputs(wait(["a"], recorder, timeout=2.0))
    assert trio.current_time() == 2.0
    assert (recorder.cancelled, recorder.running) == (1, 0)
    assert caught.value.timeout == 2.0
    assert str(caught.value) == "the function gave no result for 'a' within its timeout of 2 s"


async def test_on_timeout_is_asked_once_the_attempt_has_unwound_and_only_then_is_the_slot_free(
    wait: Any, autojump_clock: MockClock
) -> None:
    async def tidy(value: str) -> str:
        try:
            await trio.sleep(math.inf if value == "a" else 1.0)
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(3.0)
        return value

    recorder = Recorder(tidy)
    on_timeout = Recorder(Scripted(default=Step(1.0, result="late")))
    out = await outputs(wait("ab", recorder, timeout=2.0, capacity=1, on_timeout=on_timeout))
    assert out == ["late", "b"]
    assert [(call.started, call.ended) for call in recorder.calls] == [(0.0, 5.0), (6.0, 10.0)]
    assert [(call.value, call.started, call.ended) for call in on_timeout.calls] == [("a", 5.0, 6.0)]


async def test_a_function_that_swallows_the_cancellation_and_returns_has_given_its_result(
    wait: Any, autojump_clock: MockClock
) -> None:
    async def stubborn(value: str) -> str:
        with trio.move_on_after(1000):
            try:
                await trio.sleep_forever()
            except trio.Cancelled:
                return value.upper()
        raise AssertionError

    async with wait("abc", stubborn, timeout=2.0, capacity=1) as results:
        out = [(result, trio.current_time()) async for result in results]
    assert out == [("A", 2.0), ("B", 4.0), ("C", 6.0)]
    assert (results.statistics().completed, results.statistics().timed_out) == (3, 0)


async def test_a_shielded_function_that_is_late_has_given_its_result_too(wait: Any, autojump_clock: MockClock) -> None:
    async def shielded(value: str) -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(5.0)
        return value.upper()

    assert await outputs_at(wait("ab", shielded, timeout=2.0, capacity=1)) == [("A", 5.0), ("B", 10.0)]


async def test_a_result_at_the_very_deadline_comes_out_once_or_times_out_once(
    wait: Any, autojump_clock: MockClock
) -> None:
    on_timeout = Recorder(Scripted(default=Step(result="late")))
    async with wait(range(50), Scripted(default=Step(2.0)), timeout=2.0, on_timeout=on_timeout) as results:
        out = [result async for result in results]
    statistics = results.statistics()
    assert len(out) == 50
    assert statistics.completed + statistics.timed_out == 50
    assert out.count("late") == len(on_timeout.calls) == statistics.timed_out


async def test_waiting_for_a_slot_is_not_counted(wait: Any, autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=Step(3.0)))
    out = await outputs_at(wait("abc", recorder, timeout=4.0, capacity=1))
    assert out == [("a", 3.0), ("b", 6.0), ("c", 9.0)]
    assert recorder.cancelled == 0


async def test_the_deadline_covers_all_attempts_and_backoffs(wait: Any, autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=Step(1.0, error=OSError)))
    with pytest.raises(ElementTimeoutError):
        await outputs(wait(["a"], recorder, timeout=6.5, retry=FixedDelay(100, 2.0)))
    assert trio.current_time() == 6.5
    assert [(call.started, call.ended) for call in recorder.calls] == [(0.0, 1.0), (3.0, 4.0), (6.0, 6.5)]


async def test_the_deadline_may_strike_in_a_backoff(wait: Any, autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=Step(1.0, error=OSError)))
    with pytest.raises(ElementTimeoutError):
        await outputs(wait(["a"], recorder, timeout=5.0, retry=FixedDelay(100, 8.0)))
    assert trio.current_time() == 5.0
    assert (len(recorder.calls), recorder.cancelled) == (1, 0)


async def test_no_timeout_is_no_deadline(wait: Any, autojump_clock: MockClock) -> None:
    assert await outputs_at(wait(["a"], Scripted(default=Step(1e6)), timeout=math.inf)) == [("a", 1e6)]


async def test_with_a_timeout_of_zero_a_call_may_not_wait(wait: Any, autojump_clock: MockClock) -> None:
    async def quick(value: str) -> str:
        return value.upper()

    assert await outputs(wait("ab", quick, timeout=0)) == ["A", "B"]
    recorder = Recorder(Scripted(default=NEVER))
    assert await outputs(wait("ab", recorder, timeout=0, on_error="skip")) == []
    assert recorder.cancelled == 2
    assert trio.current_time() == 0.0


async def test_a_timeout_is_not_retried(wait: Any, autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=NEVER))
    assert await outputs(wait(["a"], recorder, timeout=2.0, retry=FixedDelay(3, 0.5), on_error="skip")) == []
    assert len(recorder.calls) == 1


async def test_a_function_that_fails_while_it_is_being_cancelled_has_failed(
    wait: Any, autojump_clock: MockClock
) -> None:
    error = OSError("could not say goodbye")

    async def rude(value: str) -> str:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            raise error from None
        raise AssertionError

    with pytest.raises(OSError, match="goodbye") as caught:
        await outputs(wait(["a"], rude, timeout=2.0))
    assert caught.value is error


# Whatever is awaitable.


async def test_a_call_may_give_any_awaitable(wait: Any) -> None:
    class Later:
        def __await__(self) -> Iterator[Any]:
            return Scripted()("result").__await__()

    def call(value: str) -> Awaitable[str]:
        return Later()

    assert await outputs(wait(["a"], call, timeout=2.0)) == ["result"]


async def test_an_exception_before_there_is_an_awaitable_is_one_of_the_element(wait: Any) -> None:
    error = ValueError("bad value")

    def call(value: str) -> Awaitable[str]:
        raise error

    with pytest.raises(ValueError, match="bad value") as caught:
        await outputs(wait(["a"], call, timeout=2.0))
    assert caught.value is error
    assert await outputs(wait(["a"], call, timeout=2.0, on_error="skip")) == []
