"""The operator's life: failure, cancellation, leaving early, `open` and `close`, and that nothing is left alive."""

from __future__ import annotations

import math
import traceback
from collections.abc import AsyncIterator, Callable
from typing import Any, NoReturn

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from trio_asyncio_io import (
    AsyncWaitOperator,
    FixedDelay,
    Snapshot,
    SnapshotElement,
    StreamRecord,
    ordered_wait,
)
from trio_asyncio_io.testing import Recorder, Scripted, Step

NEVER = Step(math.inf)


async def raised_by(operator: Any, body: Callable[[Any], Any] | None = None) -> Any:
    """What comes out of the operator's block around a body, which by default receives everything."""
    try:
        async with operator as results:
            if body is not None:
                await body(results)
            else:
                async for _ in results:
                    pass
    except BaseException as error:  # noqa: BLE001 - that is what is asked
        return error
    return None


# Failure.


async def test_the_first_failure_cancels_all_others_and_comes_out_once_they_have_unwound(
    wait: Any, autojump_clock: MockClock, nothing_left: Any
) -> None:
    async def tidy(value: str) -> str:
        if value == "b":
            await trio.sleep(1.0)
            raise error
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(4.0)
        raise AssertionError

    error = OSError("busy")
    recorder = Recorder(tidy)
    with nothing_left():
        assert await raised_by(wait("abcdef", recorder, timeout=60.0, capacity=3)) is error
        assert trio.current_time() == 5.0
        assert (recorder.running, recorder.cancelled, recorder.values) == (0, 2, ["a", "b", "c"])
    assert error.__notes__ == ["element 1, 'b', attempt 1"]


async def test_a_failure_cancels_the_body(wait: Any, autojump_clock: MockClock) -> None:
    async def body(results: Any) -> None:
        try:
            await trio.sleep_forever()
        finally:
            unwound.append(trio.current_time())

    unwound: list[float] = []
    error = OSError("busy")
    assert await raised_by(wait("a", Scripted(default=Step(2.0, error=error)), timeout=5.0), body) is error
    assert unwound == [2.0]


async def test_a_failure_comes_out_with_the_context_and_the_cause_that_it_had(wait: Any) -> None:
    context, cause, error = KeyError("context"), LookupError("cause"), OSError("busy")
    error.__context__, error.__cause__ = context, cause
    function = Scripted(default=Step(error=error))
    assert await raised_by(wait("a", function, timeout=5.0)) is error
    assert (error.__context__, error.__cause__) == (context, cause)


async def test_the_traceback_of_a_failure_leads_into_the_function(wait: Any) -> None:
    async def fail(value: str) -> None:
        raise OSError("busy")

    error = await raised_by(wait("a", fail, timeout=5.0))
    assert "fail" in [frame.name for frame in traceback.extract_tb(error.__traceback__)]


async def test_a_failure_without_a_context_gets_none(wait: Any, autojump_clock: MockClock) -> None:
    async def body(results: Any) -> None:
        try:
            await trio.sleep_forever()
        finally:
            await trio.lowlevel.cancel_shielded_checkpoint()

    error = OSError("busy")
    await raised_by(wait("ab", Scripted({"b": Step(1.0, error=error)}, default=NEVER), timeout=5.0), body)
    assert error.__context__ is None
    assert error.__cause__ is None


async def test_a_group_that_the_function_raises_comes_out_as_that_group(wait: Any) -> None:
    group = ExceptionGroup("two at once", [OSError("one"), ValueError("two")])
    assert await raised_by(wait("a", Scripted(default=Step(error=group)), timeout=5.0)) is group


async def test_any_exception_comes_out_as_itself(wait: Any) -> None:
    """Those with a meaning in generators and coroutines too, and those that are not errors."""
    for kind in (StopAsyncIteration, RuntimeError, trio.EndOfChannel, trio.BrokenResourceError, SystemExit):
        error = kind("mine")
        assert await raised_by(wait("a", Scripted(default=Step(error=error)), timeout=5.0)) is error


async def test_two_failures_at_once_are_one_with_a_note_of_the_other_and_both_count(wait: Any) -> None:
    async def fail(value: str) -> None:
        await signal.wait()
        raise errors[value]

    async def body(each: Any) -> None:
        nonlocal results
        results = each
        await wait_all_tasks_blocked()
        signal.set()
        await trio.sleep_forever()

    results: Any = None
    signal = trio.Event()
    errors = {"a": OSError("one"), "b": ValueError("two")}
    error = await raised_by(wait("ab", fail, timeout=5.0), body)
    other = errors["a" if error is errors["b"] else "b"]
    assert "attempt 1" in error.__notes__[0]
    assert repr(other) in error.__notes__[1]
    assert (results.statistics().failed, results.statistics().cancelled) == (2, 0)


async def test_one_exception_that_strikes_twice_is_still_one(wait: Any) -> None:
    async def fail(value: str) -> None:
        await signal.wait()
        raise error

    async def body(results: Any) -> None:
        await wait_all_tasks_blocked()
        signal.set()
        await trio.sleep_forever()

    signal = trio.Event()
    error = OSError("busy")
    assert await raised_by(wait("ab", fail, timeout=5.0), body) is error
    assert sorted(error.__notes__) == ["element 0, 'a', attempt 1", "element 1, 'b', attempt 1"]


async def test_after_a_failure_nothing_more_is_delivered_and_everything_is_in_the_snapshot(
    wait: Any, autojump_clock: MockClock
) -> None:
    function = Scripted({"a": Step(1.0), "b": Step(2.0, error=OSError), "c": Step(1.0), "d": NEVER})
    received = []

    async def body(operator: Any) -> None:
        received.append(await operator.output.receive())
        await trio.sleep_forever()

    operator = AsyncWaitOperator(function, source=[StreamRecord("a", 1), "b", "c", "d"], timeout=5.0)
    assert type(await raised_by(operator, body)) is OSError
    assert received == [StreamRecord("a", 1)]
    assert [(each.element, each.results) for each in operator.snapshot().elements] == [
        ("b", None),
        ("c", ["c"]),
        ("d", None),
    ]
    statistics = operator.statistics()
    assert (statistics.completed, statistics.failed, statistics.cancelled) == (2, 1, 1)
    assert (statistics.running, statistics.emitted, statistics.buffered) == (0, 1, 3)


async def test_a_body_that_puts_when_the_failure_comes_gets_the_failure_only(
    push: Any, autojump_clock: MockClock
) -> None:
    """It does not get a BrokenResourceError beside it, wherever it just was."""

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
        buffer = 1 if body is waiting else 10_000
        operator = push(function, timeout=5.0, capacity=1, buffer=buffer)
        with trio.fail_after(60):
            assert await raised_by(operator, body) is error, body


# The body and the source.


async def test_what_the_body_raises_comes_out_as_itself(wait: Any, autojump_clock: MockClock) -> None:
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
        assert await raised_by(wait("abc", recorder, timeout=math.inf), body) is error
        assert error.__context__ is context
        assert (recorder.running, recorder.cancelled) == (0, 3)


async def test_a_failure_and_an_error_of_the_body_come_out_together(wait: Any, autojump_clock: MockClock) -> None:
    failure, mine = OSError("busy"), ValueError("while cleaning up")

    async def body(results: Any) -> None:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            raise mine from None

    group = await raised_by(wait("a", Scripted(default=Step(1.0, error=failure)), timeout=5.0), body)
    assert isinstance(group, ExceptionGroup)
    assert group.exceptions == (failure, mine)


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt])
async def test_a_failure_is_not_lost_if_a_task_of_the_body_fails_while_it_is_cancelled(
    wait: Any, autojump_clock: MockClock, kind: type[BaseException]
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

    group = await raised_by(wait("a", Scripted(default=Step(1.0, error=failure)), timeout=5.0), body)
    leaves = []
    pending = [group]
    while pending:
        each = pending.pop()
        if isinstance(each, BaseExceptionGroup):
            pending.extend(each.exceptions)
        else:
            leaves.append(each)
    assert sorted(leaves, key=repr) == sorted([failure, mine], key=repr)


async def test_the_sources_exception_comes_out_as_itself_and_stops_everything(
    wait: Any, autojump_clock: MockClock, nothing_left: Any
) -> None:
    error = OSError("no more")

    async def source() -> AsyncIterator[str]:
        yield "a"
        await trio.sleep(1.0)
        raise error

    recorder = Recorder(Scripted(default=NEVER))
    with nothing_left():
        assert await raised_by(wait(source(), recorder, timeout=math.inf)) is error
    assert (recorder.running, recorder.cancelled) == (0, 1)
    assert not hasattr(error, "__notes__")


# Leaving, and cancellation from outside.


async def test_leaving_early_is_no_error_and_leaves_nothing_alive(
    wait: Any, autojump_clock: MockClock, nothing_left: Any
) -> None:
    recorder = Recorder(Scripted({0: Step(1.0)}, default=NEVER))
    with nothing_left():
        async with wait(range(100), recorder, timeout=math.inf, capacity=5) as results:
            async for result in results:
                assert result == 0
                break
    assert (recorder.running, recorder.cancelled) == (0, 5)
    assert [each.element for each in results.snapshot().elements] == list(range(1, 100))


async def test_leaving_waits_until_all_have_unwound(wait: Any, autojump_clock: MockClock) -> None:
    async def tidy(value: str) -> None:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(3.0)

    async with wait("abc", tidy, timeout=math.inf):
        await trio.sleep(1.0)
    assert trio.current_time() == 4.0


async def test_one_may_leave_at_once(wait: Any, nothing_left: Any) -> None:
    with nothing_left():
        async with wait(range(100), Scripted(), timeout=5.0):
            pass


async def test_a_function_that_fails_because_the_block_was_left_is_told_by_name(
    wait: Any, autojump_clock: MockClock
) -> None:
    error = OSError("could not say goodbye")

    async def rude(value: str) -> None:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            raise error from None

    async def body(results: Any) -> None:
        await wait_all_tasks_blocked()

    assert await raised_by(wait("a", rude, timeout=5.0), body) is error
    assert error.__notes__ == ["element 0, 'a', attempt 1"]
    assert await raised_by(wait("a", rude, timeout=5.0, on_error="skip"), body) is None


@pytest.mark.parametrize("instant", [0.0, 0.5, 1.0, 2.5, 4.0])
async def test_cancellation_from_outside_reaches_everything(
    wait: Any, autojump_clock: MockClock, nothing_left: Any, instant: float
) -> None:
    recorder = Recorder(Scripted(default=Step(1.0)))
    with nothing_left():
        with trio.move_on_after(instant) as scope:
            async with wait(range(10), recorder, timeout=5.0, capacity=2) as results:
                async for _ in results:
                    pass
        assert scope.cancelled_caught
        assert trio.current_time() == instant
    statistics = results.statistics()
    assert recorder.running == statistics.running == 0
    assert recorder.cancelled == statistics.cancelled
    assert statistics.completed + statistics.cancelled == len(recorder.calls)


async def test_a_failure_is_not_lost_when_a_cancellation_from_outside_comes_too(
    wait: Any, autojump_clock: MockClock
) -> None:
    """The failure was first; the cancellation came while the others were unwinding."""

    async def tidy(value: str) -> str:
        if value == "b":
            await trio.sleep(1.0)
            raise error
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(4.0)
        raise AssertionError

    error = OSError("busy")
    with trio.move_on_after(2.0):
        assert await raised_by(wait("ab", tidy, timeout=60.0)) is error
    assert trio.current_time() == 5.0


async def test_a_failure_at_the_very_instant_of_a_cancellation_is_told_or_in_the_snapshot(
    push: Any, autojump_clock: MockClock
) -> None:
    error = OSError("busy")
    operator = push(Scripted(default=Step(1.0, error=error)), timeout=5.0)
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


# open and close.


class Diary:
    """A function that writes down what happens to it."""

    def __init__(self, **raising: BaseException) -> None:
        self.lines: list[tuple[str, float]] = []
        self._raising = raising

    def _write(self, line: str) -> None:
        self.lines.append((line, trio.current_time()))
        if line in self._raising:
            raise self._raising[line]

    async def open(self) -> None:
        await trio.sleep(1.0)
        self._write("open")

    async def invoke(self, value: str) -> str:
        await trio.sleep(2.0)
        self._write(value)
        return value

    async def close(self) -> None:
        await trio.sleep(0.5)
        self._write("close")


async def test_open_comes_before_the_first_invocation_and_close_after_the_last(
    wait: Any, autojump_clock: MockClock
) -> None:
    diary = Diary()
    assert await raised_by(wait(["a"], diary, timeout=5.0)) is None
    assert diary.lines == [("open", 1.0), ("a", 3.0), ("close", 3.5)]


async def test_close_comes_after_the_last_invocation_has_unwound(wait: Any, autojump_clock: MockClock) -> None:
    class Tidy(Diary):
        async def invoke(self, value: str) -> str:
            try:
                await trio.sleep_forever()
            finally:
                with trio.CancelScope(shield=True):
                    await trio.sleep(3.0)
                self._write("unwound")
            raise AssertionError

    diary = Tidy()
    async with wait("a", diary, timeout=math.inf):
        await trio.sleep(1.0)
    assert diary.lines == [("open", 1.0), ("unwound", 5.0), ("close", 5.5)]


async def test_what_open_raises_comes_out_as_itself_and_close_is_not_called(
    wait: Any, autojump_clock: MockClock
) -> None:
    error = OSError("no connection")
    diary = Diary(open=error)
    assert await raised_by(wait(["a"], diary, timeout=5.0)) is error
    assert diary.lines == [("open", 1.0)]


async def test_an_open_that_was_cancelled_needs_no_close(wait: Any, autojump_clock: MockClock) -> None:
    diary = Diary()
    with trio.move_on_after(0.5):
        await raised_by(wait(["a"], diary, timeout=5.0))
    assert diary.lines == []


async def test_what_close_raises_comes_out_as_itself(wait: Any, autojump_clock: MockClock) -> None:
    error = OSError("connection lost")
    assert await raised_by(wait(["a"], Diary(close=error), timeout=5.0)) is error


@pytest.mark.parametrize("where", ["a", "body"])
async def test_after_a_failure_close_is_called_and_what_it_raises_is_a_note(
    wait: Any, autojump_clock: MockClock, where: str
) -> None:
    error = ValueError("first")
    raising: dict[str, BaseException] = {"close": OSError("connection lost")}

    async def body(results: Any) -> None:
        if where == "body":
            raise error
        await trio.sleep_forever()

    diary = Diary(**raising, **({"a": error} if where == "a" else {}))
    assert await raised_by(wait(["a"], diary, timeout=5.0), body) is error
    assert diary.lines[-1][0] == "close"
    assert error.__notes__[-1] == "the function's close() raised too: OSError('connection lost')"


async def test_close_runs_when_the_operator_is_cancelled(wait: Any, autojump_clock: MockClock) -> None:
    diary = Diary()
    with trio.move_on_after(2.0) as scope:
        async with wait(["a"], diary, timeout=5.0) as results:
            await results.receive()
    assert scope.cancelled_caught
    assert diary.lines == [("open", 1.0), ("close", 2.5)]


async def test_close_runs_when_the_operator_is_cancelled_before_its_block_begins(
    wait: Any, autojump_clock: MockClock, nothing_left: Any
) -> None:
    class Quick(Diary):
        async def open(self) -> None:
            self._write("open")

    diary = Quick()
    snapshot = Snapshot((SnapshotElement(0, "a"),))
    with nothing_left(), trio.CancelScope() as scope:
        scope.cancel()
        await raised_by(wait(["b"], diary, timeout=5.0, restore=snapshot))
    assert [line for line, _ in diary.lines] == ["open", "close"]


async def test_what_close_raises_after_a_cancellation_is_not_lost(wait: Any, autojump_clock: MockClock) -> None:
    error = OSError("connection lost")
    with trio.move_on_after(2.0):
        assert await raised_by(wait(["a"], Diary(close=error), timeout=5.0)) is error


@pytest.mark.parametrize("cancelled", [True, False])
async def test_close_is_bounded_by_the_timeout(wait: Any, autojump_clock: MockClock, cancelled: bool) -> None:
    class Hanging(Diary):
        async def close(self) -> None:
            await trio.sleep_forever()

    with trio.move_on_after(2.0 if cancelled else math.inf):
        error = await raised_by(wait(["a"], Hanging(), timeout=5.0))
        assert isinstance(error, trio.TooSlowError)
    assert trio.current_time() == (7.0 if cancelled else 8.0)


@pytest.mark.parametrize("name", ["open", "close"])
async def test_an_open_or_close_that_is_not_async_is_told(wait: Any, autojump_clock: MockClock, name: str) -> None:
    class Half(Diary):
        pass

    setattr(Half, name, lambda self: None)
    error = await raised_by(wait([], Half(), timeout=5.0))
    assert isinstance(error, TypeError)
    assert f"Half.{name}" in str(error) or f"{name}" in str(error)
    assert "async" in str(error)


async def test_an_object_with_nothing_but_invoke_will_do(wait: Any) -> None:
    class Bare:
        async def invoke(self, value: str) -> str:
            return value

    assert await raised_by(wait("a", Bare(), timeout=5.0)) is None


# One life.


async def test_an_operator_runs_once(push: Any) -> None:
    async with push(Scripted(), timeout=5.0) as operator:
        with pytest.raises(RuntimeError, match="an operator runs once"):
            await operator.__aenter__()
    with pytest.raises(RuntimeError, match="an operator runs once"):
        async with operator:
            pass


async def test_snapshot_and_statistics_work_before_within_and_after_the_block(push: Any) -> None:
    operator = push(Scripted(), timeout=5.0)
    assert len(operator.snapshot()) == 0
    assert operator.statistics().emitted == 0
    async with operator:
        await operator.put("a")
        assert len(operator.snapshot()) == 1
        assert await operator.output.receive() == "a"
    assert len(operator.snapshot()) == 0
    assert operator.statistics().emitted == 1


async def test_several_operators_can_be_chained(wait: Any, autojump_clock: MockClock) -> None:
    double = Scripted({value: Step(1.0, result=value * 2) for value in range(10)})
    add_one = Scripted({value * 2: Step(1.0, result=value * 2 + 1) for value in range(10)})
    async with wait(range(10), double, timeout=5.0) as doubled, wait(doubled, add_one, timeout=5.0) as results:
        out = [result async for result in results]
    assert sorted(out) == [value * 2 + 1 for value in range(10)]
    assert trio.current_time() == 2.0


async def test_statistics_add_up_on_virtual_time(autojump_clock: MockClock) -> None:
    function = Scripted(
        {"a": Step(3.0), "b": [Step(1.0, error=OSError), Step(0.5)], "c": NEVER, "d": Step(1.0, error=ValueError)}
    )
    retry = FixedDelay(1, 0.5, retry_on=OSError)
    async with ordered_wait("abcd", function, timeout=4.0, capacity=2, retry=retry, on_error="skip") as results:
        await trio.sleep(2.5)
        halfway = results.statistics()
        assert [(result, trio.current_time()) async for result in results] == [("a", 3.0), ("b", 3.0)]
    assert (halfway.running, halfway.buffered, halfway.completed, halfway.retried) == (2, 4, 1, 1)
    assert halfway.slot_wait_seconds == 2.0
    statistics = results.statistics()
    # a: 0.0 to 3.0; b: 0.0 to 2.0, out at 3.0; c: 2.0 to 6.0; d: 3.0 to 4.0, out at 6.0
    assert (statistics.completed, statistics.failed, statistics.timed_out, statistics.cancelled) == (2, 1, 1, 0)
    assert (statistics.skipped, statistics.retried, statistics.emitted) == (2, 1, 2)
    assert (statistics.running, statistics.buffered, statistics.peak_running, statistics.peak_buffered) == (0, 0, 2, 4)
    assert statistics.slot_wait_seconds == 2.0 + 3.0
    assert statistics.head_wait_seconds == 1.0 + 2.0


@pytest.mark.parametrize("when", ["on_timeout", "on_error"])
async def test_an_invocation_is_counted_once_even_if_its_handler_is_cancelled(
    wait: Any, autojump_clock: MockClock, when: str
) -> None:
    async def handler(*arguments: Any) -> None:
        await trio.sleep_forever()

    function = Scripted(default=NEVER if when == "on_timeout" else Step(1.0, error=OSError))
    async with wait("a", function, timeout=5.0, **{when: handler}) as results:
        await trio.sleep(6.0 if when == "on_timeout" else 2.0)
    statistics = results.statistics()
    assert statistics.completed + statistics.failed + statistics.timed_out + statistics.cancelled == 1
    assert statistics.running == 0
