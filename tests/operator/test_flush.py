"""`flush`: the operator calls it when no more calls will follow."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.support import outputs
from trio_asyncio_io import (
    AsyncFunction,
    keyed_wait,
    ordered_wait,
)


class WaitingFunction(AsyncFunction[str, str]):
    """Returns all results at the flush, and records its instant."""

    def __init__(self) -> None:
        self.waiting = 0
        self.flushed: list[tuple[float, int]] = []
        self._go = trio.Event()

    async def invoke(self, value: str) -> str:
        self.waiting += 1
        await self._go.wait()
        self.waiting -= 1
        return value

    def flush(self) -> None:
        self.flushed.append((trio.current_time(), self.waiting))
        self._go.set()
        self._go = trio.Event()


async def test_the_function_is_flushed_when_no_more_calls_will_follow(
    async_wait: Any, autojump_clock: MockClock
) -> None:
    """All three calls wait at the flush, although the source had ended before the first call."""
    function = WaitingFunction()
    assert sorted(await outputs(async_wait("abc", function, timeout=60.0))) == ["a", "b", "c"]
    assert function.flushed == [(0.0, 3)]


async def test_the_function_is_flushed_again_after_each_later_call(autojump_clock: MockClock) -> None:
    function = WaitingFunction()
    assert sorted(await outputs(keyed_wait("aba", function, key=str, timeout=60.0))) == ["a", "a", "b"]
    assert function.flushed == [(0.0, 2), (0.0, 1)]


async def test_the_function_is_not_flushed_while_more_input_may_follow(
    make_operator: Any, autojump_clock: MockClock
) -> None:
    function = WaitingFunction()
    async with make_operator(function, timeout=60.0) as operator:
        await operator.put("a")
        await trio.sleep(10.0)
        assert function.flushed == []
        operator.end_input()
        assert await operator.output.receive() == "a"
    assert function.flushed == [(10.0, 1)]


async def test_a_flush_that_raises_is_logged_and_has_no_other_effect(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(AsyncFunction[str, str]):
        async def invoke(self, value: str) -> str:
            await trio.sleep(1.0)
            return value

        def flush(self) -> None:
            raise RuntimeError("broken")

    assert await outputs(ordered_wait("ab", Broken(), timeout=60.0)) == ["a", "b"]
    assert "flush() of the function raised" in caplog.text
