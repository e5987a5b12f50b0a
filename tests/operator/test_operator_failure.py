"""Failures of the function, the body and the source: the exception raised, and the snapshot."""

from __future__ import annotations

import asyncio
import math
import traceback
from collections.abc import AsyncIterator
from typing import Any, NoReturn

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from trio_asyncio_io.testing import Recorder, Scripted, Step

NEVER = Step(math.inf)


class UnwindsSlowly:
    """Raises `error` for "b" after a second. The calls for other values take 4 s to unwind."""

    def __init__(self) -> None:
        self.error = OSError("busy")

    async def __call__(self, value: str) -> str:
        if value == "b":
            await trio.sleep(1.0)
            raise self.error
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(4.0)
        raise AssertionError


async def test_a_failure_is_raised_despite_a_later_cancellation_from_outside(
    raised_by: Any, async_wait: Any, autojump_clock: MockClock
) -> None:
    """The cancellation comes while the other calls unwind."""
    function = UnwindsSlowly()
    with trio.move_on_after(2.0):
        assert await raised_by(async_wait("ab", function, timeout=60.0)) is function.error
    assert trio.current_time() == 5.0


async def test_the_first_failure_cancels_all_calls_and_is_raised_after_they_have_unwound(
    raised_by: Any, async_wait: Any, autojump_clock: MockClock, nothing_left: Any
) -> None:
    function = UnwindsSlowly()
    recorder = Recorder(function)
    with nothing_left():
        assert await raised_by(async_wait("abcdef", recorder, timeout=60.0, capacity=3)) is function.error
        assert trio.current_time() == 5.0
        assert (recorder.running, recorder.cancelled, recorder.values) == (0, 2, ["a", "b", "c"])
    assert function.error.__notes__ == ["element 1, 'b', attempt 1"]


async def test_a_failure_cancels_the_body(raised_by: Any, async_wait: Any, autojump_clock: MockClock) -> None:
    async def body(results: Any) -> None:
        try:
            await trio.sleep_forever()
        finally:
            unwound.append(trio.current_time())

    unwound: list[float] = []
    error = OSError("busy")
    assert await raised_by(async_wait("a", Scripted(default=Step(2.0, error=error)), timeout=5.0), body) is error
    assert unwound == [2.0]


async def test_a_failure_keeps_its_context_and_cause(raised_by: Any, async_wait: Any) -> None:
    context, cause, error = KeyError("context"), LookupError("cause"), OSError("busy")
    error.__context__, error.__cause__ = context, cause
    function = Scripted(default=Step(error=error))
    assert await raised_by(async_wait("a", function, timeout=5.0)) is error
    assert (error.__context__, error.__cause__) == (context, cause)


async def test_the_traceback_of_a_failure_ends_in_the_function(raised_by: Any, async_wait: Any) -> None:
    async def fail(value: str) -> None:
        raise OSError("busy")

    error = await raised_by(async_wait("a", fail, timeout=5.0))
    assert "fail" in [frame.name for frame in traceback.extract_tb(error.__traceback__)]


async def test_a_failure_without_a_context_has_none_afterwards(
    raised_by: Any, async_wait: Any, autojump_clock: MockClock
) -> None:
    async def body(results: Any) -> None:
        try:
            await trio.sleep_forever()
        finally:
            await trio.lowlevel.cancel_shielded_checkpoint()

    error = OSError("busy")
    await raised_by(async_wait("ab", Scripted({"b": Step(1.0, error=error)}, default=NEVER), timeout=5.0), body)
    assert error.__context__ is None
    assert error.__cause__ is None


async def test_a_group_raised_by_the_function_is_raised_unchanged(raised_by: Any, async_wait: Any) -> None:
    group = ExceptionGroup("two at once", [OSError("one"), ValueError("two")])
    assert await raised_by(async_wait("a", Scripted(default=Step(error=group)), timeout=5.0)) is group


async def test_any_exception_is_raised_unchanged(raised_by: Any, async_wait: Any) -> None:
    """Including those with a meaning in generators and coroutines, and BaseExceptions."""
    for kind in (StopAsyncIteration, RuntimeError, trio.EndOfChannel, trio.BrokenResourceError, SystemExit):
        error = kind("mine")
        assert await raised_by(async_wait("a", Scripted(default=Step(error=error)), timeout=5.0)) is error


async def raised_together(raised_by: Any, async_wait: Any, errors: dict[str, BaseException]) -> tuple[Any, Any]:
    """The exception of an operator of which two calls raise in one pass of the scheduler, and its statistics."""

    async def fail(value: str) -> None:
        await signal.wait()
        raise errors[value]

    async def body(results: Any) -> None:
        entered.append(results)
        await wait_all_tasks_blocked()
        signal.set()
        await trio.sleep_forever()

    signal, entered = trio.Event(), list[Any]()
    error = await raised_by(async_wait(errors, fail, timeout=5.0), body)
    return error, entered[0].statistics()


async def test_of_two_failures_one_is_raised_with_a_note_of_the_other_and_both_count(
    raised_by: Any, async_wait: Any
) -> None:
    errors: dict[str, BaseException] = {"a": OSError("one"), "b": ValueError("two")}
    error, statistics = await raised_together(raised_by, async_wait, errors)
    other = errors["a" if error is errors["b"] else "b"]
    assert "attempt 1" in error.__notes__[0]
    assert repr(other) in error.__notes__[1]
    assert (statistics.failed, statistics.cancelled) == (2, 0)


async def test_an_exception_object_raised_by_two_calls_is_raised_once(raised_by: Any, async_wait: Any) -> None:
    busy = OSError("busy")
    error, _ = await raised_together(raised_by, async_wait, {"a": busy, "b": busy})
    assert error is busy
    assert sorted(error.__notes__) == ["element 0, 'a', attempt 1", "element 1, 'b', attempt 1"]


async def test_a_failure_during_put_in_the_body_is_raised_alone(
    raised_by: Any, make_operator: Any, autojump_clock: MockClock
) -> None:
    """Without an additional BrokenResourceError, wherever the body is."""

    async def waiting(operator: Any) -> None:
        await operator.put("a")
        await operator.put("b")

    async def busy(operator: Any) -> None:
        while True:
            await operator.put("a")

    async def at_once(operator: Any) -> None:
        while True:
            operator.put_nowait("a")
            with trio.CancelScope(shield=True):
                await trio.sleep(0.5)

    async def in_a_nursery(operator: Any) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(waiting, operator)
            nursery.start_soon(busy, operator)
            async for _ in operator.output:
                pass

    for body in (waiting, busy, at_once, in_a_nursery):
        error = OSError("busy")
        function = Scripted(default=Step(1.0, error=error))
        buffer = 1 if body is waiting else 1_000
        operator = make_operator(function, timeout=5.0, capacity=1, buffer=buffer)
        with trio.fail_after(60):
            assert await raised_by(operator, body) is error, body


# The body and the source


async def test_an_exception_of_the_body_is_raised_unchanged(
    raised_by: Any, async_wait: Any, autojump_clock: MockClock
) -> None:
    context = KeyError("context")
    for error in (
        OSError("mine"),
        ExceptionGroup("mine", [OSError(), ValueError()]),
        ExceptionGroup("mine", [OSError()]),
        BaseExceptionGroup("mine", [KeyboardInterrupt()]),
        StopAsyncIteration("mine"),
        KeyboardInterrupt("mine"),
    ):

        async def body(results: Any, error: BaseException = error) -> NoReturn:
            await wait_all_tasks_blocked()
            error.__context__ = context
            raise error

        recorder = Recorder(Scripted(default=NEVER))
        assert await raised_by(async_wait("abc", recorder, timeout=math.inf), body) is error
        assert error.__context__ is context
        assert (recorder.running, recorder.cancelled) == (0, 3)


async def test_a_failure_and_an_exception_of_the_body_are_raised_as_a_group(
    raised_by: Any, async_wait: Any, autojump_clock: MockClock
) -> None:
    failure, mine = OSError("busy"), ValueError("while cleaning up")

    async def body(results: Any) -> None:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            raise mine from None

    group = await raised_by(async_wait("a", Scripted(default=Step(1.0, error=failure)), timeout=5.0), body)
    assert isinstance(group, ExceptionGroup)
    assert group.exceptions == (failure, mine)


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt])
async def test_a_failure_is_not_lost_if_a_cancelled_task_of_the_body_fails(
    raised_by: Any, async_wait: Any, autojump_clock: MockClock, kind: type[BaseException]
) -> None:
    failure, mine = OSError("busy"), kind("while cleaning up")

    async def child() -> None:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            raise mine from None

    async def body(results: Any) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(child)
            await trio.sleep_forever()

    group = await raised_by(async_wait("a", Scripted(default=Step(1.0, error=failure)), timeout=5.0), body)
    leaves = []
    pending = [group]
    while pending:
        each = pending.pop()
        if isinstance(each, BaseExceptionGroup):
            pending.extend(each.exceptions)
        else:
            leaves.append(each)
    assert sorted(leaves, key=repr) == sorted([failure, mine], key=repr)


async def test_an_exception_of_the_source_is_raised_unchanged_and_cancels_all_calls(
    raised_by: Any, async_wait: Any, autojump_clock: MockClock, nothing_left: Any
) -> None:
    error = OSError("no more")

    async def source() -> AsyncIterator[str]:
        yield "a"
        await trio.sleep(1.0)
        raise error

    recorder = Recorder(Scripted(default=NEVER))
    with nothing_left():
        assert await raised_by(async_wait(source(), recorder, timeout=math.inf)) is error
    assert (recorder.running, recorder.cancelled) == (0, 1)
    assert not hasattr(error, "__notes__")


@pytest.mark.parametrize("exits", [(SystemExit(3), SystemExit(3)), (KeyboardInterrupt(), KeyboardInterrupt())])
async def test_equal_exits_of_several_tasks_are_raised_once(
    raised_by: Any, async_wait: Any, exits: tuple[BaseException, ...]
) -> None:
    """In a group, a SystemExit would lose its exit status."""
    error, _ = await raised_together(raised_by, async_wait, dict(zip("ab", exits, strict=True)))
    assert error in exits


async def test_different_exits_are_raised_as_a_group(raised_by: Any, async_wait: Any) -> None:
    group, _ = await raised_together(raised_by, async_wait, {"a": SystemExit(0), "b": SystemExit(1)})
    assert isinstance(group, BaseExceptionGroup)
    assert group.message == "several exceptions leave the operator's block"
    assert sorted(each.code for each in group.exceptions) == [0, 1]


def test_entering_an_operator_outside_trio_raises_a_clear_error(async_wait: Any) -> None:
    async def function(value: int) -> int:
        return value

    async def main() -> None:
        async with async_wait([1], function, timeout=5.0):
            pass

    with pytest.raises(RuntimeError, match="the operator needs Trio"):
        asyncio.run(main())
