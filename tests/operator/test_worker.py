"""Workers: the number of running invocations, the order of their starts, and their deadlines."""

from __future__ import annotations

import math
from contextvars import ContextVar
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.support import bursts_of, outputs
from trio_asyncio_io import ordered_wait
from trio_asyncio_io.testing import Recorder, Scripted, Step

NEVER = Step(math.inf)


@pytest.mark.parametrize("capacity", [1, 2, 7])
async def test_exactly_capacity_invocations_start(async_wait: Any, autojump_clock: MockClock, capacity: int) -> None:
    recorder = Recorder(Scripted(default=NEVER))
    async with async_wait(range(100), recorder, timeout=math.inf, capacity=capacity) as results:
        await wait_all_tasks_blocked()
        assert recorder.running == capacity
        assert recorder.values == list(range(capacity))
        statistics = results.statistics()
        assert (statistics.running, statistics.peak_running, statistics.buffered) == (capacity, capacity, 100)
    assert (recorder.peak_running, recorder.running) == (capacity, 0)


async def test_no_more_workers_start_than_there_are_records(async_wait: Any, autojump_clock: MockClock) -> None:
    before = trio.lowlevel.current_statistics().tasks_living
    async with async_wait(range(3), Scripted(default=NEVER), timeout=math.inf, capacity=100):
        await wait_all_tasks_blocked()
        three_workers_and_the_emitter = 4
        assert trio.lowlevel.current_statistics().tasks_living - before == three_workers_and_the_emitter


async def test_after_the_end_of_the_input_a_worker_without_an_attempt_returns(
    async_wait: Any, autojump_clock: MockClock
) -> None:
    before = trio.lowlevel.current_statistics().tasks_living
    function = Scripted({number: Step(1.0 + number) for number in range(3)})
    async with async_wait(range(3), function, timeout=math.inf, capacity=3) as results:
        for instant, workers in ((0.5, 3), (1.5, 2), (2.5, 1)):
            await trio.sleep_until(instant)
            the_emitter = 1
            assert trio.lowlevel.current_statistics().tasks_living - before - the_emitter == workers
        assert len([result async for result in results]) == 3


async def test_a_long_stream_needs_no_more_tasks_than_the_capacity(async_wait: Any, autojump_clock: MockClock) -> None:
    before = trio.lowlevel.current_statistics().tasks_living
    peak = 0

    async def count_tasks(value: int) -> int:
        nonlocal peak
        peak = max(peak, trio.lowlevel.current_statistics().tasks_living - before)
        await trio.sleep(1.0)
        return value

    await outputs(async_wait(range(2_000), count_tasks, timeout=5.0, capacity=5))
    assert peak <= 5 + 3  # the workers, the feeder, the emitter and the timer


async def shielded(value: Any) -> Any:
    with trio.CancelScope(shield=True):
        await trio.sleep(2.0)
    return value


@pytest.mark.parametrize("why", ["failure", "leaving", "cancellation"])
async def test_a_stopping_operator_starts_no_invocation(async_wait: Any, autojump_clock: MockClock, why: str) -> None:
    """Even in a worker whose function ignores its cancellation."""

    async def one_fails(value: Any) -> Any:
        if value == 0 and why == "failure":
            await trio.sleep(1.0)
            raise OSError("busy")
        return await shielded(value)

    recorder = Recorder(one_fails)
    error: Exception | None = None
    with trio.CancelScope() as scope:
        if why == "cancellation":
            scope.deadline = 1.0
        try:
            async with async_wait(range(100), recorder, timeout=10.0, capacity=3) as results:
                await trio.sleep(1.0 if why == "leaving" else math.inf)
        except OSError as caught:
            error = caught
    assert (type(error) is OSError) == (why == "failure")
    assert trio.current_time() == 2.0
    assert recorder.values == [0, 1, 2]
    done = [each.sequence for each in results.snapshot().elements if each.results is not None]
    assert done == ([1, 2] if why == "failure" else [0, 1, 2])


async def test_a_cancelled_operator_starts_no_invocation_while_its_body_unwinds(
    async_wait: Any, autojump_clock: MockClock
) -> None:
    recorder = Recorder(shielded)
    with trio.move_on_after(1.0):
        async with async_wait(range(100), recorder, timeout=10.0, capacity=3):
            try:
                await trio.sleep_forever()
            finally:
                with trio.CancelScope(shield=True):
                    await trio.sleep(50.0)
    assert trio.current_time() == 51.0
    assert recorder.values == [0, 1, 2]


async def test_a_function_that_never_suspends_lets_other_tasks_run() -> None:
    """A worker has a checkpoint after a number of calls, whatever the function does."""
    calls = 0

    async def count_call(value: int) -> int:
        nonlocal calls
        calls += 1
        return value

    async with bursts_of(lambda: calls) as bursts:
        assert await outputs(ordered_wait(range(5_000), count_call, capacity=1, timeout=1.0)) == list(range(5_000))
    assert max(bursts) <= 250


async def test_the_function_runs_in_the_context_of_the_block_and_not_of_the_first_put(make_operator: Any) -> None:
    request = ContextVar("request", default="none")

    async def function(value: str) -> str:
        return request.get()

    request.set("the block's")
    async with make_operator(function, timeout=5.0) as operator:
        for value in "ab":
            request.set(value)
            await operator.put(value)
            assert await operator.output.receive() == "the block's"


async def test_a_deadline_needs_no_task_of_its_own(async_wait: Any, autojump_clock: MockClock) -> None:
    before = trio.lowlevel.current_statistics().tasks_living
    async with async_wait(range(300), Scripted(default=NEVER), timeout=60.0, capacity=10):
        await wait_all_tasks_blocked()
        assert trio.lowlevel.current_statistics().tasks_living - before <= 10 + 2
