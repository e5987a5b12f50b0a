"""Deadlines of invocations, and the awaitables that a call may return."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Iterator
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.support import outputs
from trio_asyncio_io import ElementTimeoutError
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
