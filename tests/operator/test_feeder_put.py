"""`put`, `put_nowait` and `end_input`. Tests of sources are in test_feeder.py."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.support import outputs
from trio_asyncio_io import AsyncWaitOperator, StreamRecord, Watermark
from trio_asyncio_io.testing import Recorder, Scripted, Step

NEVER = Scripted(default=Step(math.inf))
AT_ONCE = Scripted()


async def check_refused(operator: Any, error: type[Exception], match: str) -> None:
    """Both ways to put an element raise this."""
    with pytest.raises(error, match=match):
        await operator.put("a")
    with pytest.raises(error, match=match):
        operator.put_nowait("a")


async def test_put_waits_while_the_buffer_is_full(make_operator: Any, autojump_clock: MockClock) -> None:
    async with make_operator(AT_ONCE, timeout=5.0, capacity=1, buffer=2) as operator, trio.open_nursery() as nursery:
        await operator.put("a")
        await operator.put("b")
        nursery.start_soon(operator.put, "c")
        await wait_all_tasks_blocked()
        assert [each.element for each in operator.snapshot().elements] == ["a", "b"]
        await operator.output.receive()
        await wait_all_tasks_blocked()
        assert [each.element for each in operator.snapshot().elements] == ["b", "c"]


async def test_a_waiting_put_needs_room_for_one_record_only(make_operator: Any, autojump_clock: MockClock) -> None:
    """Unlike the reading of a source, which continues when a part of the buffer is free."""
    function = Scripted(default=Step(1.0))
    async with make_operator(function, timeout=5.0, capacity=1, buffer=48) as operator, trio.open_nursery() as nursery:
        for value in range(48):
            operator.put_nowait(value)
        nursery.start_soon(operator.put, 48)
        await operator.output.receive()
        await wait_all_tasks_blocked()
        assert operator.snapshot().elements[-1].element == 48


async def test_waiting_puts_are_accepted_in_order(make_operator: Any, autojump_clock: MockClock) -> None:
    recorder = Recorder(AT_ONCE)
    async with make_operator(recorder, timeout=5.0, capacity=1, buffer=1) as operator, trio.open_nursery() as nursery:
        await operator.put(0)
        for value in range(1, 30):
            nursery.start_soon(operator.put, value)
            await wait_all_tasks_blocked()
        for _ in range(30):
            await operator.output.receive()
    assert recorder.values == list(range(30))


async def test_put_is_always_a_checkpoint(make_operator: Any) -> None:
    async with make_operator(AT_ONCE, timeout=5.0) as operator:
        with trio.testing.assert_checkpoints():
            await operator.put("a")


async def test_put_accepts_records_and_watermarks(make_operator: Any) -> None:
    async with make_operator(AT_ONCE, timeout=5.0) as operator:
        for element in (StreamRecord("a", 1), Watermark(1), "b"):
            await operator.put(element)
        operator.end_input()
        out = [result async for result in operator.output]
    assert out == [StreamRecord("a", 1), Watermark(1), "b"]


async def test_put_nowait_raises_would_block_when_the_buffer_is_full(make_operator: Any) -> None:
    async with make_operator(NEVER, timeout=5.0, capacity=1, buffer=2) as operator:
        operator.put_nowait("a")
        operator.put_nowait("b")
        with pytest.raises(trio.WouldBlock):
            operator.put_nowait("c")
        assert [each.element for each in operator.snapshot().elements] == ["a", "b"]


async def test_put_nowait_raises_would_block_while_a_put_waits(make_operator: Any) -> None:
    recorder = Recorder(AT_ONCE)
    async with make_operator(recorder, timeout=5.0, capacity=1, buffer=1) as operator, trio.open_nursery() as nursery:
        operator.put_nowait("a")
        nursery.start_soon(operator.put, "b")
        nursery.start_soon(operator.put, "c")
        await wait_all_tasks_blocked()
        operator.output.receive_nowait()
        with pytest.raises(trio.WouldBlock):
            operator.put_nowait("d")
        for _ in range(2):
            await operator.output.receive()
    assert sorted(recorder.values) == ["a", "b", "c"]


async def test_a_cancelled_put_accepts_nothing(make_operator: Any, autojump_clock: MockClock) -> None:
    async with make_operator(NEVER, timeout=math.inf, capacity=1, buffer=1) as operator:
        await operator.put("a")
        with trio.move_on_after(1.0) as scope:
            await operator.put("b")
        assert scope.cancelled_caught
        with trio.CancelScope() as scope:
            scope.cancel()
            await operator.put("c")
        assert scope.cancelled_caught
        assert [each.element for each in operator.snapshot().elements] == ["a"]


async def test_put_after_end_input_raises_closed_resource_error(make_operator: Any) -> None:
    async with make_operator(AT_ONCE, timeout=5.0) as operator:
        operator.end_input()
        operator.end_input()
        await check_refused(operator, trio.ClosedResourceError, "the input has ended")


async def test_end_input_wakes_waiting_puts_with_closed_resource_error(make_operator: Any) -> None:
    async def put(operator: AsyncWaitOperator[Any, Any]) -> None:
        with pytest.raises(trio.ClosedResourceError, match="the input has ended"):
            await operator.put("x")
        refused.append("x")

    refused: list[str] = []
    async with make_operator(AT_ONCE, timeout=5.0, capacity=1, buffer=1) as operator, trio.open_nursery() as nursery:
        operator.put_nowait("a")
        for _ in range(3):
            nursery.start_soon(put, operator)
        await wait_all_tasks_blocked()
        operator.end_input()
        await wait_all_tasks_blocked()
        assert refused == ["x"] * 3
        assert [result async for result in operator.output] == ["a"]


async def test_put_after_the_block_raises_closed_resource_error(make_operator: Any) -> None:
    async with make_operator(AT_ONCE, timeout=5.0) as operator:
        pass
    await check_refused(operator, trio.ClosedResourceError, "block has been left")


async def test_put_after_a_failure_raises_broken_resource_error_with_the_cause(make_operator: Any) -> None:
    error = OSError("busy")
    refused: list[BaseException] = []

    async def put(operator: AsyncWaitOperator[Any, Any]) -> None:
        with pytest.raises(trio.BrokenResourceError, match="the operator has failed: OSError") as caught:
            await operator.put("x")
        refused.append(caught.value)

    async def put_and_wait(operator: Any, nursery: trio.Nursery) -> None:
        async with operator:
            operator.put_nowait("a")
            nursery.start_soon(put, operator)
            await trio.sleep_forever()

    function = Scripted({"a": Step(error=error)}, default=Step(math.inf))
    async with trio.open_nursery() as nursery:
        operator = make_operator(function, timeout=5.0, capacity=1, buffer=1)
        with pytest.raises(OSError, match="busy"):
            await put_and_wait(operator, nursery)
    with pytest.raises(trio.BrokenResourceError) as caught:
        operator.put_nowait("y")
    assert refused[0].__cause__ is error
    assert repr(caught.value.__cause__) == "OSError('busy')"


async def test_put_after_closing_the_output_raises_broken_resource_error(make_operator: Any) -> None:
    async with make_operator(AT_ONCE, timeout=5.0) as operator:
        await operator.output.aclose()
        await check_refused(operator, trio.BrokenResourceError, "output was closed")


async def test_put_before_the_block_is_refused_with_a_hint(make_operator: Any) -> None:
    operator = make_operator(AT_ONCE, timeout=5.0)
    await check_refused(operator, RuntimeError, "enter the operator first: `async with")
    assert len(operator.snapshot()) == 0


async def test_put_beside_a_source_is_refused_with_a_hint(autojump_clock: MockClock) -> None:
    """It would wait for the end of the source, which may have none."""

    async def source() -> AsyncIterator[str]:
        await trio.sleep(5.0)
        yield "a"

    async with AsyncWaitOperator(AT_ONCE, timeout=5.0, source=source()) as operator:
        await check_refused(operator, RuntimeError, r"beside source=.* leave source= out")
        assert trio.current_time() == 0.0
        assert await outputs(operator.output) == ["a"]


async def test_nothing_is_accepted_while_the_function_opens(make_operator: Any, autojump_clock: MockClock) -> None:
    class Slow:
        async def open(self) -> None:
            await trio.sleep(5.0)

        async def invoke(self, value: str) -> str:
            return value

    operator = make_operator(Slow(), timeout=5.0)

    async def put() -> None:
        await trio.sleep(1.0)
        with pytest.raises(RuntimeError, match="enter the operator first"):
            await operator.put("a")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(put)
        async with operator:
            await operator.put("b")
            assert await operator.output.receive() == "b"


async def test_an_exception_of_the_key_function_is_raised_by_put_only() -> None:
    async with AsyncWaitOperator(AT_ONCE, mode="keyed", key=len, timeout=5.0) as operator:
        with pytest.raises(TypeError):
            await operator.put(3)
        with pytest.raises(TypeError):
            operator.put_nowait(3)
        await operator.put("abc")
        operator.end_input()
        assert [result async for result in operator.output] == ["abc"]
