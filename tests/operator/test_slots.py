"""A slot is a running call: records in a backoff have none, and wait for one before their next attempt."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from math import ceil, inf
from typing import Any
from weakref import WeakSet

import pytest
import trio
from trio.testing import MockClock

from tests.support import outputs
from trio_asyncio_io import AsyncWaitOperator, ElementTimeoutError, FixedDelay, ordered_wait, unordered_wait
from trio_asyncio_io.gates import CircuitBreaker
from trio_asyncio_io.testing import Recorder, Scripted, Step, fails_first

pytestmark = pytest.mark.usefixtures("no_cpu_time")

MISS = Step(1.0, error=LookupError)


def calls_of(recorder: Recorder[Any, Any]) -> list[tuple[Any, float]]:
    return [(call.value, call.started) for call in recorder.calls]


async def test_records_whose_results_are_retried_do_not_hold_back_new_ones(
    async_wait: Any, autojump_clock: MockClock
) -> None:
    recorder = Recorder(Scripted({"a": [Step(1.0, result=None), Step(1.0)]}, default=Step(1.0)))
    retry = FixedDelay(1, 10.0, retry_on_result=lambda result: result is None)
    assert sorted(await outputs(async_wait("ab", recorder, retry=retry, capacity=1, timeout=40.0))) == ["a", "b"]
    assert calls_of(recorder) == [("a", 0.0), ("b", 1.0), ("a", 11.0)]


@pytest.mark.parametrize(("capacity", "group"), [(1, None), (4, None), (4, 5)])
async def test_a_service_that_is_down_is_not_hammered(
    async_wait: Any, capacity: int, group: int | None, autojump_clock: MockClock
) -> None:
    """It refuses each call in 2 s of 20 s. Without the limit there are more than two refusals per record."""
    refused = 0

    async def call(value: Any) -> Any:
        nonlocal refused
        if trio.current_time() % 20.0 < 2.0:
            refused += 1
            await trio.sleep(0.01)
            raise OSError("busy")
        await trio.sleep(0.1)
        return value

    records = capacity * 10 * 57 * (group or 1)  # those that can be served in 57 s
    options = {"group": group, "capacity": capacity, "timeout": inf, "retry": FixedDelay(9, 0.5)}
    async with async_wait(range(records), call, **options) as results:
        assert len([result async for result in results]) == records
    seconds = trio.current_time()
    assert seconds - 2.0 * ceil(seconds / 20.0) < 57.0 / 0.95
    assert refused * (group or 1) < 0.15 * records
    assert results.statistics().failed == 0


async def test_a_retry_that_is_cancelled_while_it_waits_for_a_slot_has_waited(autojump_clock: MockClock) -> None:
    script = Scripted({"a": [MISS, Step(1.0)]}, default=Step(10.0))
    with trio.move_on_after(7.0):
        async with AsyncWaitOperator(
            script, source="xab", retry=FixedDelay(1, 3.0), capacity=2, timeout=inf
        ) as operator:
            await trio.sleep_forever()
    waits = {"a": 7.0 - 4.0, "b": 1.0}
    assert operator.statistics().slot_wait_seconds == sum(waits.values())


@pytest.mark.parametrize(("delay", "calls"), [(2.75, 2), (3.0, 1), (60.0, 1)])
async def test_a_record_whose_backoff_would_end_at_its_deadline_or_later_times_out_now(
    delay: float, calls: int, async_wait: Any, autojump_clock: MockClock
) -> None:
    recorder = Recorder(Scripted(default=MISS))

    async def replace(value: str) -> str:
        return f"no {value} at {trio.current_time()}"

    options: Any = {"retry": FixedDelay(9, delay), "capacity": 1, "timeout": 4.0, "on_timeout": replace}
    end = 4.0 if calls == 2 else 1.0
    assert await outputs(async_wait("a", recorder, **options)) == [f"no a at {end}"]
    assert len(recorder.calls) == calls


async def test_the_timeout_of_a_retry_that_would_begin_too_late_has_the_last_error_as_its_cause(
    async_wait: Any, autojump_clock: MockClock
) -> None:
    script = Scripted({"a": [Step(1.0, error=LookupError("first")), Step(1.0, error=LookupError("second"))]})
    with pytest.raises(ElementTimeoutError) as caught:
        await outputs(async_wait("a", script, retry=FixedDelay(9, 2.0), timeout=4.5))
    assert str(caught.value) == "no other attempt could begin for 'a' within its timeout of 4.5 s"
    assert str(caught.value.__cause__) == "second"
    assert trio.current_time() == 4.0


async def test_a_result_that_is_retried_is_no_cause(async_wait: Any, autojump_clock: MockClock) -> None:
    retry = FixedDelay(9, 5.0, retry_on_result=lambda result: True)
    with pytest.raises(ElementTimeoutError) as caught:
        await outputs(async_wait("a", Scripted(default=Step(1.0)), retry=retry, timeout=4.5))
    assert caught.value.__cause__ is None
    assert trio.current_time() == 1.0


async def test_after_the_output_was_closed_no_record_takes_a_slot_again(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted({"a": MISS}, default=Step(5.0)))
    options: Any = {"retry": FixedDelay(1, 2.0), "timeout": inf, "capacity": 2}
    async with AsyncWaitOperator(recorder, source="xabc", **options) as operator:
        await trio.sleep(2.0)
        operator.output.close()
        await trio.sleep(20.0)
    assert calls_of(recorder) == [("x", 0.0), ("a", 0.0), ("b", 1.0)]


async def test_a_timeout_without_a_running_call_is_no_overload(autojump_clock: MockClock) -> None:
    gate = CircuitBreaker(calls=1)
    retry = FixedDelay(9, 60.0, retry_on_result=lambda result: result is None)
    script = Scripted(default=Step(0.0, result=None))
    options: Any = {"retry": retry, "timeout": 5.0, "on_error": "skip", "gate": gate}
    assert await outputs(ordered_wait("ab", script, **options)) == []
    assert gate.is_closed


async def test_a_slot_that_a_backoff_frees_does_not_wait_for_the_feeders_next_burst(autojump_clock: MockClock) -> None:
    """Long calls occupy all slots but one. The buffer has room for one record, and is refilled in bursts of several."""
    steps: dict[int, Any] = {number: fails_first(1, LookupError) for number in range(1, 64)}
    steps |= {number: Step(100.0) for number in range(-63, 0)}
    recorder = Recorder(Scripted(steps, default=Step(0.25)))
    options: Any = {"retry": FixedDelay(1, 50.0), "timeout": inf, "capacity": 64, "buffer": 63 + 64}
    assert len(await outputs(unordered_wait(range(-63, 65), recorder, **options))) == 63 + 65
    assert (64, 0.25) in calls_of(recorder)


@pytest.mark.parametrize("limit", [3600.0, inf])
@pytest.mark.parametrize("group", [None, 5])
async def test_a_record_that_was_retried_is_not_kept_after_it_was_received(
    async_wait: Any, autojump_clock: MockClock, group: int | None, limit: float
) -> None:
    """The buffer bounds the memory, whatever the length of the stream."""

    class Value:
        def __init__(self) -> None:
            self.calls = 0

    alive: WeakSet[Value] = WeakSet()
    buffer = 20

    async def fail_first(value: Any) -> Any:
        values = value if isinstance(value, list) else [value]
        for each in values:
            each.calls += 1
        if values[0].calls == 1:
            raise OSError("busy")
        return value

    def source() -> Iterator[Value]:
        for _ in range(20 * buffer):
            value = Value()
            alive.add(value)
            yield value

    options = {"capacity": 4, "buffer": buffer, "group": group, "timeout": limit, "retry": FixedDelay(1, 0.5)}
    async with async_wait(source(), fail_first, **options) as results:
        while True:
            try:
                for _ in range(buffer):
                    await results.receive()
            except trio.EndOfChannel:
                break
            gc.collect()
            assert len(alive) <= buffer + 3  # those that the source, the function and the consumer have in hand
