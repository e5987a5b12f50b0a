"""Retries in one invocation, on virtual time. The arithmetic of strategies is in tests/core/test_retry.py."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.support import outputs
from trio_asyncio_io import ExponentialBackoff, FixedDelay
from trio_asyncio_io.testing import Recorder, Scripted, Step


@pytest.mark.parametrize("max_retries", [0, 1, 3])
async def test_at_most_max_retries_calls_follow_the_first(
    async_wait: Any, autojump_clock: MockClock, max_retries: int
) -> None:
    error = OSError("busy")
    recorder = Recorder(Scripted(default=Step(error=error)))
    with pytest.raises(OSError, match="busy") as caught:
        await outputs(async_wait(["a"], recorder, timeout=60.0, retry=FixedDelay(max_retries, 1.0)))
    assert caught.value is error
    assert error.__notes__ == [f"element 0, 'a', attempt {max_retries + 1} of {max_retries + 1}"]
    assert [call.started for call in recorder.calls] == [float(number) for number in range(max_retries + 1)]


async def test_a_delay_with_jitter_never_exceeds_the_backoff(async_wait: Any, autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=Step(error=OSError)))
    operator = async_wait(range(50), recorder, timeout=60.0, retry=ExponentialBackoff(1, 4.0, 4.0), on_error="skip")
    assert await outputs(operator) == []
    waits = {call.started for call in recorder.calls[50:]}
    assert len(waits) > 10
    assert all(0.0 < seconds <= 4.0 for seconds in waits)


async def test_a_result_that_matches_retry_on_result_is_retried(async_wait: Any, autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted({"a": [Step(result=None), Step(result=None), Step(result="done")]}))
    retry = FixedDelay(3, 1.0, retry_on_result=lambda result: result is None)
    assert await outputs(async_wait(["a"], recorder, timeout=60.0, retry=retry)) == ["done"]
    assert len(recorder.calls) == 3


async def test_the_last_result_counts_when_the_retries_are_used_up(async_wait: Any, autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted({"a": [Step(result=number) for number in range(9)]}))
    retry = FixedDelay(2, 1.0, retry_on_result=lambda result: True)
    assert await outputs(async_wait(["a"], recorder, timeout=60.0, retry=retry)) == [2]


async def test_exceptions_and_results_share_max_retries(async_wait: Any, autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted({"a": [Step(error=OSError("first")), Step(result=None), Step(error=OSError("last"))]}))
    retry = FixedDelay(2, 1.0, retry_on_result=lambda result: result is None)
    with pytest.raises(OSError, match="last"):
        await outputs(async_wait(["a"], recorder, timeout=60.0, retry=retry))
    assert len(recorder.calls) == 3


async def test_an_exception_raised_before_the_first_await_is_retried(
    async_wait: Any, autojump_clock: MockClock
) -> None:
    calls: list[float] = []

    async def at_once(value: str) -> str:
        calls.append(trio.current_time())
        if len(calls) < 3:
            raise OSError("busy")
        return value

    def before_there_is_a_coroutine(value: str) -> Awaitable[str]:
        calls.append(trio.current_time())
        if len(calls) < 3:
            raise OSError("busy")
        return Scripted()(value)

    for function in (at_once, before_there_is_a_coroutine):
        calls.clear()
        began = trio.current_time()
        assert await outputs(async_wait(["a"], function, timeout=60.0, retry=FixedDelay(3, 1.0))) == ["a"]
        assert [call - began for call in calls] == [0.0, 1.0, 2.0]


async def test_two_attempts_of_one_element_never_run_at_once(async_wait: Any, autojump_clock: MockClock) -> None:
    """Even if the first one unwinds slowly."""

    async def unwind_slowly(value: str) -> str:
        try:
            with trio.fail_after(1.0):
                await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(5.0)
        raise AssertionError

    recorder = Recorder(unwind_slowly)
    await outputs(async_wait(["a"], recorder, timeout=14.0, retry=FixedDelay(5, 0.0), on_error="skip"))
    assert recorder.peak_running == 1
    assert [(call.started, call.ended) for call in recorder.calls] == [(0.0, 6.0), (6.0, 12.0), (12.0, 18.0)]
