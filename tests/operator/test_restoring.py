"""Runs that restore a snapshot."""

from __future__ import annotations

import math
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.support import outputs
from trio_asyncio_io import AsyncWaitOperator, FixedDelay, Snapshot, SnapshotElement, StreamRecord, Watermark
from trio_asyncio_io.testing import Recorder, Scripted, Step, fails_first

AT_ONCE = Scripted()
NEVER = Scripted(default=Step(math.inf))


async def test_restored_records_precede_those_of_the_source(async_wait: Any, autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=Step(1.0)))
    snapshot = Snapshot((SnapshotElement(5, "x"), SnapshotElement(9, Watermark(1)), SnapshotElement(11, "y")))
    out = await outputs(async_wait("ab", recorder, timeout=5.0, capacity=1, restore=snapshot))
    assert out == ["x", Watermark(1), "y", "a", "b"]
    assert recorder.values == ["x", "y", "a", "b"]


async def test_restored_records_precede_those_that_are_put(make_operator: Any, autojump_clock: MockClock) -> None:
    snapshot = Snapshot(tuple(SnapshotElement(number, f"old {number}") for number in range(5)))
    operator = make_operator(AT_ONCE, timeout=5.0, capacity=1, buffer=2, restore=snapshot)
    async with operator, trio.open_nursery() as nursery:
        with pytest.raises(trio.WouldBlock):
            operator.put_nowait("new")
        nursery.start_soon(operator.put, "new")
        out = [await operator.output.receive() for _ in range(6)]
    assert out == [f"old {number}" for number in range(5)] + ["new"]


async def test_a_restored_result_is_emitted_with_its_timestamp_and_without_a_call(async_wait: Any) -> None:
    snapshot = Snapshot((SnapshotElement(0, StreamRecord("a", 7), ["A", "AA"]), SnapshotElement(1, "b", [])))
    recorder = Recorder(AT_ONCE)
    out = await outputs(async_wait([], recorder, timeout=5.0, restore=snapshot))
    assert out == [StreamRecord("A", 7), StreamRecord("AA", 7)]
    assert recorder.calls == []


async def test_a_restored_record_has_a_new_deadline_and_starts_at_attempt_one(
    async_wait: Any, autojump_clock: MockClock
) -> None:
    function = Scripted({"a": [Step(1.0, error=OSError), Step(math.inf)]})
    async with async_wait("a", function, timeout=4.0, retry=FixedDelay(3, 0.0)) as results:
        await trio.sleep(3.0)
        snapshot = results.snapshot()
    error = OSError("still busy")
    recorder = Recorder(Scripted({"a": fails_first(3, error, then=Step(3.5, error=error))}))
    began = trio.current_time()
    with pytest.raises(OSError, match="still busy") as caught:
        await outputs(async_wait([], recorder, timeout=4.0, retry=FixedDelay(3, 0.0), restore=snapshot))
    assert caught.value.__notes__ == ["element 0, 'a', attempt 4 of 4"]
    assert trio.current_time() == began + 3.5


async def test_an_exception_of_the_key_function_for_a_restored_record_is_raised_unchanged() -> None:
    snapshot = Snapshot((SnapshotElement(0, "a"), SnapshotElement(1, 5), SnapshotElement(2, "b")))
    operator = AsyncWaitOperator(NEVER, mode="keyed", key=len, timeout=5.0, restore=snapshot)
    with pytest.raises(TypeError, match="has no len"):
        async with operator:
            await trio.sleep_forever()
    assert [each.element for each in operator.snapshot().elements] == ["a", 5, "b"]
