"""The consumer's end of the operator."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from trio_asyncio_io import Results
from trio_asyncio_io.testing import Recorder, Scripted, Step

AT_ONCE = Scripted()
NEVER = Scripted(default=Step(math.inf))


async def test_the_results_are_a_receive_channel(async_wait: Any) -> None:
    async with async_wait("a", AT_ONCE, timeout=5.0) as results:
        assert isinstance(results, Results)
        assert isinstance(results, trio.abc.ReceiveChannel)


async def test_results_can_be_iterated_or_received(async_wait: Any) -> None:
    async with async_wait("abcd", AT_ONCE, timeout=5.0, capacity=1) as results:
        out = [await results.receive()]
        async for result in results:
            out.append(result)
            if result == "b":
                break
        out.extend([result async for result in results])
    assert out == ["a", "b", "c", "d"]


async def test_every_receive_after_the_end_raises_end_of_channel(async_wait: Any) -> None:
    async with async_wait("a", AT_ONCE, timeout=5.0) as results:
        await results.receive()
        for _ in range(2):
            with pytest.raises(trio.EndOfChannel):
                await results.receive()
            assert [result async for result in results] == []
        with pytest.raises(trio.EndOfChannel):
            results.receive_nowait()


async def test_receive_nowait_returns_an_available_output(async_wait: Any) -> None:
    async with async_wait("a", AT_ONCE, timeout=5.0) as results:
        with pytest.raises(trio.WouldBlock):
            results.receive_nowait()
        await wait_all_tasks_blocked()
        assert results.receive_nowait() == "a"


async def test_after_the_block_the_channel_is_closed(async_wait: Any) -> None:
    async with async_wait("abc", AT_ONCE, timeout=5.0) as results:
        await results.receive()
    with pytest.raises(trio.ClosedResourceError, match="the operator's block has been left, or the channel was closed"):
        await results.receive()
    with pytest.raises(trio.ClosedResourceError, match="the operator's block has been left, or the channel was closed"):
        results.receive_nowait()


async def test_receive_is_a_cancellation_point_even_if_an_output_is_available(async_wait: Any) -> None:
    async with async_wait("ab", AT_ONCE, timeout=5.0) as results:
        await wait_all_tasks_blocked()
        for receive in (results.receive, results.__anext__):
            with trio.CancelScope() as scope:
                scope.cancel()
                await receive()
            assert scope.cancelled_caught
        assert len([result async for result in results]) == 2


async def test_a_cancelled_receive_receives_nothing(async_wait: Any, autojump_clock: MockClock) -> None:
    async with async_wait("ab", Scripted(default=Step(2.0)), timeout=5.0) as results:
        with trio.move_on_after(1.0) as scope:
            await results.receive()
        assert scope.cancelled_caught
        assert sorted([result async for result in results]) == ["a", "b"]


async def test_a_fast_consumer_lets_other_tasks_run(async_wait: Any) -> None:
    """It suspends at least once per number of outputs, even if outputs are always available."""
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        async with async_wait(range(10_000), AT_ONCE, timeout=5.0, capacity=10) as results:
            async for _ in results:
                pass
        nursery.cancel_scope.cancel()
    assert turns > 10_000 / 40


async def test_the_outputs_of_an_element_wake_as_many_consumers_but_none_that_was_cancelled(
    async_wait: Any, autojump_clock: MockClock
) -> None:
    received: list[tuple[str, float]] = []

    async def receive_one(results: Any, patience: float) -> None:
        with trio.move_on_after(patience):
            received.append((await results.receive(), trio.current_time() - begin))

    function = Scripted({"first": Step(1.0, "ab"), "second": Step(2.0, "cd")})
    begin = trio.current_time()
    async with (
        async_wait(["first", "second"], function, timeout=5.0, flatten=True) as results,
        trio.open_nursery() as nursery,
    ):
        for patience in (0.5, 9.0, 0.5, 9.0, 9.0):
            nursery.start_soon(receive_one, results, patience)
    assert sorted(received) == [("a", 1.0), ("b", 1.0), ("c", 2.0)]


async def test_closing_stops_the_source_and_starts_no_more_invocations(
    async_wait: Any, autojump_clock: MockClock
) -> None:
    recorder = Recorder(Scripted(default=Step(1.0)))
    read: list[int] = []

    async def source() -> AsyncIterator[int]:
        for number in range(1_000):
            read.append(number)
            yield number
            await trio.sleep(0.25)

    async with async_wait(source(), recorder, timeout=5.0, capacity=2) as results:
        await results.receive()
        await results.aclose()
        await results.aclose()
        started, seen = len(recorder.calls), len(read)
        await trio.sleep(100.0)
        assert len(recorder.calls) == started
        assert len(read) <= seen + 1
        with pytest.raises(trio.ClosedResourceError, match="or the channel was closed"):
            await results.receive()
        unfinished = [each.element for each in results.snapshot().elements]
        assert unfinished == read[1:]


async def test_invocations_that_run_at_closing_are_cancelled_when_the_block_is_left(
    async_wait: Any, autojump_clock: MockClock
) -> None:
    recorder = Recorder(NEVER)
    async with async_wait("ab", recorder, timeout=math.inf) as results:
        await wait_all_tasks_blocked()
        async with results:
            pass
        await trio.sleep(1.0)
        assert recorder.running == 2
    assert (recorder.running, recorder.cancelled) == (0, 2)
    assert [each.element for each in results.snapshot().elements] == ["a", "b"]


async def test_a_consumer_outside_the_block_does_not_mistake_a_failure_for_the_end(make_operator: Any) -> None:
    async def consume(output: Any) -> None:
        with pytest.raises(trio.ClosedResourceError):
            await output.receive()
        reported.append(True)

    async def fail(operator: Any, nursery: trio.Nursery) -> None:
        async with operator:
            nursery.start_soon(consume, operator.output)
            await wait_all_tasks_blocked()
            await operator.put("a")
            await trio.sleep_forever()

    reported: list[bool] = []
    async with trio.open_nursery() as nursery:
        operator = make_operator(Scripted({"a": Step(error=OSError("busy"))}), timeout=5.0)
        with pytest.raises(OSError, match="busy"):
            await fail(operator, nursery)
    assert reported == [True]
