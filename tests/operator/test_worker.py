"""The workers: how many invocations run, in which order they start, and that each has its own deadline."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextvars import ContextVar
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from trio_asyncio_io import ElementTimeoutError, keyed_wait, ordered_wait
from trio_asyncio_io.testing import Recorder, Scripted, Step

NEVER = Step(math.inf)


async def outputs(operator: Any) -> list[Any]:
    async with operator as results:
        return [result async for result in results]


@pytest.mark.parametrize("capacity", [1, 2, 7])
async def test_so_many_invocations_start_as_the_capacity_says_and_not_one_more(
    wait: Any, autojump_clock: MockClock, capacity: int
) -> None:
    recorder = Recorder(Scripted(default=NEVER))
    async with wait(range(100), recorder, timeout=math.inf, capacity=capacity) as results:
        await wait_all_tasks_blocked()
        assert recorder.running == capacity
        assert recorder.values == list(range(capacity))
        statistics = results.statistics()
        assert (statistics.running, statistics.peak_running, statistics.buffered) == (capacity, capacity, 100)
    assert (recorder.peak_running, recorder.running) == (capacity, 0)


async def test_the_next_invocation_starts_when_one_ends(wait: Any, autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted({"a": Step(3.0), "b": Step(1.0), "c": Step(4.0)}, default=Step(0.5)))
    await outputs(wait("abcde", recorder, timeout=10.0, capacity=2))
    assert [(call.value, call.started) for call in recorder.calls] == [
        ("a", 0.0),
        ("b", 0.0),
        ("c", 1.0),
        ("d", 3.0),
        ("e", 3.5),
    ]


@pytest.mark.parametrize("capacity", [1, 3, 50, 200])
async def test_invocations_start_in_the_order_of_arrival_whatever_the_scheduler_does(
    wait: Any, autojump_clock: MockClock, capacity: int
) -> None:
    """Trio runs the tasks that are ready in random order."""
    recorder = Recorder(Scripted({value: Step(value * 7 % 5 / 4) for value in range(200)}))
    await outputs(wait(range(200), recorder, timeout=10.0, capacity=capacity))
    assert recorder.values == list(range(200))
    assert recorder.peak_running == capacity


async def test_what_is_put_one_by_one_starts_in_that_order_too(push: Any, autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=Step(1.0)))
    async with push(recorder, timeout=5.0, capacity=20) as operator:
        for value in range(20):
            operator.put_nowait(value)
        operator.end_input()
        assert len([result async for result in operator.output]) == 20
    assert recorder.values == list(range(20))
    assert trio.current_time() == 1.0


async def test_of_records_that_wait_for_a_slot_the_oldest_starts_though_it_waited_for_its_key_too(
    autojump_clock: MockClock,
) -> None:
    recorder = Recorder(Scripted(default=Step(1.0)))
    source = ["a1", "a2", "b1", "c1", "a3"]
    await outputs(keyed_wait(source, recorder, key=lambda value: value[0], timeout=5.0, capacity=1))
    assert recorder.values == source


async def test_no_task_is_started_that_has_nothing_to_do(wait: Any, autojump_clock: MockClock) -> None:
    before = trio.lowlevel.current_statistics().tasks_living
    async with wait(range(3), Scripted(default=NEVER), timeout=math.inf, capacity=100):
        await wait_all_tasks_blocked()
        three_workers_and_the_emitter = 4
        assert trio.lowlevel.current_statistics().tasks_living - before == three_workers_and_the_emitter


async def test_a_few_workers_serve_a_long_stream(wait: Any, autojump_clock: MockClock) -> None:
    before = trio.lowlevel.current_statistics().tasks_living
    peak = 0

    async def look(value: int) -> int:
        nonlocal peak
        peak = max(peak, trio.lowlevel.current_statistics().tasks_living - before)
        await trio.sleep(1.0)
        return value

    await outputs(wait(range(500), look, timeout=5.0, capacity=5))
    assert peak <= 5 + 2  # the workers, the feeder and the emitter


async def test_each_invocation_has_its_whole_timeout(wait: Any, autojump_clock: MockClock) -> None:
    """Although its worker's scope served another one before, and was cancelled in between."""
    function = Scripted({"a": Step(1.5), "b": NEVER, "c": Step(1.5), "d": NEVER, "e": Step(1.5)})
    async with wait("abcde", function, timeout=2.0, capacity=1, on_error="skip") as results:
        out = [(result, trio.current_time()) async for result in results]
    assert out == [("a", 1.5), ("c", 5.0), ("e", 8.5)]


async def test_a_worker_that_was_idle_for_longer_than_the_timeout_still_works(
    push: Any, autojump_clock: MockClock
) -> None:
    async with push(Scripted(default=Step(1.0)), timeout=2.0) as operator:
        for began in (0.0, 100.0, 10_000.0):
            await trio.sleep_until(began)
            await operator.put(began)
            assert await operator.output.receive() == began
            assert trio.current_time() == began + 1.0


async def test_an_idle_worker_is_woken_for_each_record(push: Any, autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=Step(1.0)))
    async with push(recorder, timeout=2.0, capacity=4) as operator:
        for round_number in range(3):
            for value in range(4):
                operator.put_nowait((round_number, value))
            for _ in range(4):
                await operator.output.receive()
    assert [call.started for call in recorder.calls] == [0.0] * 4 + [1.0] * 4 + [2.0] * 4


async def test_records_that_come_while_workers_are_busy_are_not_forgotten(wait: Any, autojump_clock: MockClock) -> None:
    async def source() -> AsyncIterator[int]:
        for value in range(40):
            await trio.sleep(value * 3 % 4 / 4)
            yield value

    recorder = Recorder(Scripted({value: Step(value * 5 % 7 / 2) for value in range(40)}))
    assert sorted(await outputs(wait(source(), recorder, timeout=9.0, capacity=3))) == list(range(40))
    assert recorder.peak_running == 3


async def shielded(value: Any) -> Any:
    with trio.CancelScope(shield=True):
        await trio.sleep(2.0)
    return value


@pytest.mark.parametrize("why", ["failure", "leaving", "cancellation"])
async def test_an_operator_that_stops_starts_nothing_any_more(wait: Any, autojump_clock: MockClock, why: str) -> None:
    """Not even from a worker whose function does not notice that it is being cancelled."""

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
            async with wait(range(100), recorder, timeout=10.0, capacity=3) as results:
                await trio.sleep(1.0 if why == "leaving" else math.inf)
        except OSError as caught:
            error = caught
    assert (type(error) is OSError) == (why == "failure")
    assert trio.current_time() == 2.0
    assert recorder.values == [0, 1, 2]
    done = [each.sequence for each in results.snapshot().elements if each.results is not None]
    assert done == ([1, 2] if why == "failure" else [0, 1, 2])


async def test_a_cancelled_operator_starts_nothing_while_its_body_still_unwinds(
    wait: Any, autojump_clock: MockClock
) -> None:
    recorder = Recorder(shielded)
    with trio.move_on_after(1.0):
        async with wait(range(100), recorder, timeout=10.0, capacity=3):
            try:
                await trio.sleep_forever()
            finally:
                with trio.CancelScope(shield=True):
                    await trio.sleep(50.0)
    assert trio.current_time() == 51.0
    assert recorder.values == [0, 1, 2]


@pytest.mark.parametrize("attempt", range(10))
async def test_not_even_in_the_very_turn_of_the_failure_is_another_invocation_started(push: Any, attempt: int) -> None:
    """Trio runs what is woken together in random order, hence several attempts."""

    async def woken_together(value: int) -> int:
        lines.append(value)
        await signal.wait()
        if value == 0:
            lines.append("failed")
            raise OSError("busy")
        return value

    lines: list[Any] = []
    signal = trio.Event()
    operator = push(woken_together, timeout=10.0, capacity=5)

    async def body() -> None:
        async with operator:
            for value in range(20):
                operator.put_nowait(value)
            await wait_all_tasks_blocked()
            signal.set()
            await trio.sleep_forever()

    with pytest.raises(OSError, match="busy"):
        await body()
    assert lines[-1] == "failed"


async def test_two_deadlines_at_one_instant_both_strike(wait: Any, autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted(default=NEVER))
    async with wait(range(4), recorder, timeout=2.0, capacity=2, on_error="skip") as results:
        assert [result async for result in results] == []
    assert [(call.started, call.ended) for call in recorder.calls] == [(0.0, 2.0)] * 2 + [(2.0, 4.0)] * 2
    assert results.statistics().timed_out == 4


@pytest.mark.parametrize("seconds", [5.0, math.inf])
async def test_no_deadline_is_kept_of_an_invocation_that_has_ended(
    push: Any, autojump_clock: MockClock, seconds: float
) -> None:
    """However it ended: memory is bounded."""
    function = Scripted({value: Step(error=OSError) for value in range(0, 100, 2)}, default=Step(0.5))
    async with push(function, timeout=seconds, capacity=10, on_error="skip") as operator:
        for value in range(100):
            operator.put_nowait(value)
        operator.end_input()
        assert len([result async for result in operator.output]) == 50
        assert len(operator._deadlines.by_scope) == 0


async def test_a_deadline_ends_one_invocation_and_not_its_neighbours(wait: Any, autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted({"a": NEVER, "b": Step(1.5)}, default=Step(1.0)))
    async with wait("abcd", recorder, timeout=2.0, capacity=2, on_error="skip") as results:
        assert [result async for result in results] == ["b", "c", "d"]
    assert [(call.value, call.cancelled) for call in recorder.calls if call.cancelled] == [("a", True)]
    with pytest.raises(ElementTimeoutError):
        await outputs(wait("abcd", recorder, timeout=2.0, capacity=2))


async def test_a_function_that_never_suspends_lets_other_tasks_run(nursery: trio.Nursery) -> None:
    """A worker takes a turn of the scheduler after so many calls, whatever the function does."""
    calls = longest = 0

    async def count_call(value: int) -> int:
        nonlocal calls
        calls += 1
        return value

    async def watch() -> None:
        nonlocal longest
        seen = 0
        while True:
            longest, seen = max(longest, calls - seen), calls
            await trio.lowlevel.checkpoint()

    nursery.start_soon(watch)
    async with ordered_wait(range(5_000), count_call, capacity=1, timeout=1.0) as results:
        assert [result async for result in results] == list(range(5_000))
    assert longest <= 250


async def test_a_function_runs_in_the_context_of_the_block_and_not_of_who_put_the_first_element(push: Any) -> None:
    request = ContextVar("request", default="none")

    async def function(value: str) -> str:
        return request.get()

    request.set("the block's")
    async with push(function, timeout=5.0) as operator:
        for value in "ab":
            request.set(value)
            await operator.put(value)
            assert await operator.output.receive() == "the block's"
