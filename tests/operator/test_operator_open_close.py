"""When `open` and `close` run, how long they may take, and how their exceptions are raised."""

from __future__ import annotations

import math
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from trio_asyncio_io import Snapshot, SnapshotElement


class RecordedFunction:
    """A function that records the calls of its methods, and raises in some of them."""

    def __init__(self, **raising: BaseException) -> None:
        self.events: list[tuple[str, float]] = []
        self._raising = raising

    def _record(self, event: str) -> None:
        self.events.append((event, trio.current_time()))
        if event in self._raising:
            raise self._raising[event]

    async def open(self) -> None:
        await trio.sleep(1.0)
        self._record("open")

    async def invoke(self, value: str) -> str:
        await trio.sleep(2.0)
        self._record(value)
        return value

    async def close(self) -> None:
        await trio.sleep(0.5)
        self._record("close")


async def test_open_runs_before_the_first_invocation_and_close_after_the_last(
    raised_by: Any, async_wait: Any, autojump_clock: MockClock
) -> None:
    function = RecordedFunction()
    assert await raised_by(async_wait(["a"], function, timeout=5.0)) is None
    assert function.events == [("open", 1.0), ("a", 3.0), ("close", 3.5)]


async def test_close_runs_after_the_last_invocation_has_unwound(async_wait: Any, autojump_clock: MockClock) -> None:
    class UnwindsSlowly(RecordedFunction):
        async def invoke(self, value: str) -> str:
            try:
                await trio.sleep_forever()
            finally:
                with trio.CancelScope(shield=True):
                    await trio.sleep(3.0)
                self._record("unwound")
            raise AssertionError

    function = UnwindsSlowly()
    async with async_wait("a", function, timeout=math.inf):
        await trio.sleep(1.0)
    assert function.events == [("open", 1.0), ("unwound", 5.0), ("close", 5.5)]


async def test_an_exception_of_open_is_raised_unchanged_and_close_is_not_called(
    raised_by: Any, async_wait: Any, autojump_clock: MockClock
) -> None:
    error = OSError("no connection")
    function = RecordedFunction(open=error)
    assert await raised_by(async_wait(["a"], function, timeout=5.0)) is error
    assert function.events == [("open", 1.0)]
    assert error.__notes__ == ["raised by open() of RecordedFunction, before the first call"]


async def test_close_is_not_called_after_a_cancelled_open(
    raised_by: Any, async_wait: Any, autojump_clock: MockClock
) -> None:
    function = RecordedFunction()
    with trio.move_on_after(0.5):
        await raised_by(async_wait(["a"], function, timeout=5.0))
    assert function.events == []


async def test_an_exception_of_close_is_raised_unchanged(
    raised_by: Any, async_wait: Any, autojump_clock: MockClock
) -> None:
    error = OSError("connection lost")
    assert await raised_by(async_wait(["a"], RecordedFunction(close=error), timeout=5.0)) is error


@pytest.mark.parametrize("where", ["a", "body"])
async def test_after_a_failure_an_exception_of_close_becomes_a_note(
    raised_by: Any, async_wait: Any, autojump_clock: MockClock, where: str
) -> None:
    error = ValueError("first")
    raising: dict[str, BaseException] = {"close": OSError("connection lost")}

    async def body(results: Any) -> None:
        if where == "body":
            raise error
        await trio.sleep_forever()

    function = RecordedFunction(**raising, **({"a": error} if where == "a" else {}))
    assert await raised_by(async_wait(["a"], function, timeout=5.0), body) is error
    assert function.events[-1][0] == "close"
    assert error.__notes__[-1] == "the function's close() raised too: OSError('connection lost')"


async def test_close_runs_when_the_operator_is_cancelled(async_wait: Any, autojump_clock: MockClock) -> None:
    function = RecordedFunction()
    with trio.move_on_after(2.0) as scope:
        async with async_wait(["a"], function, timeout=5.0) as results:
            await results.receive()
    assert scope.cancelled_caught
    assert function.events == [("open", 1.0), ("close", 2.5)]


async def test_close_runs_if_the_operator_is_cancelled_before_its_body_starts(
    raised_by: Any, async_wait: Any, autojump_clock: MockClock, nothing_left: Any
) -> None:
    class OpensImmediately(RecordedFunction):
        async def open(self) -> None:
            self._record("open")

    function = OpensImmediately()
    snapshot = Snapshot((SnapshotElement(0, "a"),))
    with nothing_left(), trio.CancelScope() as scope:
        scope.cancel()
        await raised_by(async_wait(["b"], function, timeout=5.0, restore=snapshot))
    assert [event for event, _ in function.events] == ["open", "close"]


async def test_an_exception_of_close_after_a_cancellation_is_raised(
    raised_by: Any, async_wait: Any, autojump_clock: MockClock
) -> None:
    error = OSError("connection lost")
    with trio.move_on_after(2.0):
        assert await raised_by(async_wait(["a"], RecordedFunction(close=error), timeout=5.0)) is error


@pytest.mark.parametrize("cancelled", [True, False])
async def test_close_has_a_time_limit_of_its_own(
    raised_by: Any, async_wait: Any, autojump_clock: MockClock, cancelled: bool
) -> None:
    class Hanging(RecordedFunction):
        async def close(self) -> None:
            await trio.sleep_forever()

    with trio.move_on_after(2.0 if cancelled else math.inf):
        error = await raised_by(async_wait(["a"], Hanging(), timeout=5.0))
        assert isinstance(error, trio.TooSlowError)
        assert str(error) == "close() of the function did not end within 30 s"
    assert trio.current_time() == (32.0 if cancelled else 33.0)
