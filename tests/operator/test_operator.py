"""Leaving early and cancellation from outside leave no task behind."""

from __future__ import annotations

import math
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from trio_asyncio_io import FixedDelay, ordered_wait
from trio_asyncio_io.testing import Recorder, Scripted, Step

NEVER = Step(math.inf)


# Leaving and cancellation


async def test_leaving_early_raises_nothing_and_leaves_no_task(
    async_wait: Any, autojump_clock: MockClock, nothing_left: Any
) -> None:
    recorder = Recorder(Scripted({0: Step(1.0)}, default=NEVER))
    with nothing_left():
        async with async_wait(range(100), recorder, timeout=math.inf, capacity=5) as results:
            async for result in results:
                assert result == 0
                break
    assert (recorder.running, recorder.cancelled) == (0, 5)
    assert [each.element for each in results.snapshot().elements] == list(range(1, 100))


async def test_leaving_waits_until_all_calls_have_unwound(async_wait: Any, autojump_clock: MockClock) -> None:
    async def unwind_slowly(value: str) -> None:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(3.0)

    async with async_wait("abc", unwind_slowly, timeout=math.inf):
        await trio.sleep(1.0)
    assert trio.current_time() == 4.0


async def test_an_exception_raised_because_the_block_was_left_has_a_note(
    raised_by: Any, async_wait: Any, autojump_clock: MockClock
) -> None:
    error = OSError("cleanup failed")

    async def raise_when_cancelled(value: str) -> None:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            raise error from None

    async def body(results: Any) -> None:
        await wait_all_tasks_blocked()

    assert await raised_by(async_wait("a", raise_when_cancelled, timeout=5.0), body) is error
    assert error.__notes__ == ["element 0, 'a', attempt 1"]
    assert await raised_by(async_wait("a", raise_when_cancelled, timeout=5.0, on_error="skip"), body) is None


async def test_a_failure_at_the_instant_of_a_cancellation_is_raised_or_in_the_snapshot(
    make_operator: Any, autojump_clock: MockClock
) -> None:
    error = OSError("busy")
    operator = make_operator(Scripted(default=Step(1.0, error=error)), timeout=5.0)
    caught = None
    with trio.move_on_after(1.0):
        try:
            async with operator:
                await operator.put("a")
                await trio.sleep_forever()
        except OSError as raised:
            caught = raised
    assert caught in (None, error)
    assert [each.element for each in operator.snapshot().elements] == ["a"]


# Lifetime


async def test_an_operator_can_be_entered_once(make_operator: Any) -> None:
    async with make_operator(Scripted(), timeout=5.0) as operator:
        with pytest.raises(RuntimeError, match="an operator runs once"):
            await operator.__aenter__()
    with pytest.raises(RuntimeError, match="an operator runs once"):
        async with operator:
            pass


async def test_snapshot_and_statistics_work_before_inside_and_after_the_block(make_operator: Any) -> None:
    operator = make_operator(Scripted(), timeout=5.0)
    assert len(operator.snapshot()) == 0
    assert operator.statistics().emitted == 0
    async with operator:
        await operator.put("a")
        assert len(operator.snapshot()) == 1
        assert await operator.output.receive() == "a"
    assert len(operator.snapshot()) == 0
    assert operator.statistics().emitted == 1


async def test_statistics_add_up_on_virtual_time(autojump_clock: MockClock) -> None:
    function = Scripted(
        {"a": Step(3.0), "b": [Step(1.0, error=OSError), Step(0.5)], "c": NEVER, "d": Step(1.0, error=ValueError)}
    )
    retry = FixedDelay(1, 0.5, retry_on=OSError)
    async with ordered_wait("abcd", function, timeout=4.0, capacity=2, retry=retry, on_error="skip") as results:
        await trio.sleep(2.5)
        halfway = results.statistics()
        assert [(result, trio.current_time()) async for result in results] == [("a", 3.0), ("b", 3.5)]
    assert (halfway.running, halfway.buffered, halfway.completed, halfway.retried) == (2, 4, 0, 0)
    assert halfway.slot_wait_seconds == 1.0
    statistics = results.statistics()
    # a: 0.0 to 3.0; b: 0.0 to 1.0, and 3.0 to 3.5; c: 1.0 to 5.0; d: 3.5 to 4.5, received at 5.0
    assert (statistics.completed, statistics.failed, statistics.timed_out, statistics.cancelled) == (2, 1, 1, 0)
    assert (statistics.skipped, statistics.retried, statistics.emitted) == (2, 1, 2)
    assert (statistics.running, statistics.buffered, statistics.peak_running, statistics.peak_buffered) == (0, 0, 2, 4)
    assert statistics.slot_wait_seconds == (3.0 - 1.5) + 1.0 + 3.5
    assert statistics.head_wait_seconds == 5.0 - 4.5


@pytest.mark.parametrize("when", ["on_timeout", "on_error"])
async def test_an_invocation_is_counted_once_even_if_its_handler_is_cancelled(
    async_wait: Any, autojump_clock: MockClock, when: str
) -> None:
    async def handler(*arguments: Any) -> None:
        await trio.sleep_forever()

    function = Scripted(default=NEVER if when == "on_timeout" else Step(1.0, error=OSError))
    async with async_wait("a", function, timeout=5.0, **{when: handler}) as results:
        await trio.sleep(6.0 if when == "on_timeout" else 2.0)
    statistics = results.statistics()
    assert statistics.completed + statistics.failed + statistics.timed_out + statistics.cancelled == 1
    assert statistics.running == 0
