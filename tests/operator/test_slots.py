"""A slot is a running call: records in a backoff have none, and wait for one before their next attempt."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from math import ceil, inf
from operator import itemgetter
from typing import Any
from weakref import WeakSet

import pytest
import trio
from trio.testing import MockClock

from tests.observing import StepRecorder
from trio_asyncio_io import (
    AsyncWaitOperator,
    ElementTimeoutError,
    ExponentialBackoff,
    FixedDelay,
    Histogram,
    keyed_wait,
    ordered_wait,
    unordered_wait,
)
from trio_asyncio_io.gates import CircuitBreaker, RateLimit
from trio_asyncio_io.testing import Recorder, Scripted, Step, fails_first

pytestmark = pytest.mark.usefixtures("no_cpu_time")

MISS = Step(1.0, error=LookupError)


def calls_of(recorder: Recorder[Any, Any]) -> list[tuple[Any, float]]:
    return [(call.value, call.started) for call in recorder.calls]


async def wait_for_ever(operator: Any) -> None:
    await trio.sleep_forever()


async def results_of(results: Any) -> list[Any]:
    async with results as channel:
        return [result async for result in channel]


async def test_another_record_runs_during_a_backoff(async_wait: Any, autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted({"x": Step(30.0), "a": [MISS, Step(1.0)]}, default=Step(1.0)))
    options = {"retry": FixedDelay(1, 10.0), "capacity": 2, "timeout": 40.0}
    assert sorted(await results_of(async_wait("xabc", recorder, **options))) == ["a", "b", "c", "x"]
    assert calls_of(recorder) == [("x", 0.0), ("a", 0.0), ("b", 1.0), ("c", 2.0), ("a", 11.0)]
    assert recorder.peak_running == 2


async def test_no_new_record_starts_while_as_many_wait_for_their_retry_as_can_run(
    async_wait: Any, autojump_clock: MockClock
) -> None:
    recorder = Recorder(Scripted({"a": [MISS, Step(1.0)], "b": [MISS, Step(2.0)]}, default=Step(1.0)))
    options = {"retry": FixedDelay(1, 10.0), "capacity": 2, "timeout": 40.0}
    assert sorted(await results_of(async_wait("abcd", recorder, **options))) == ["a", "b", "c", "d"]
    assert calls_of(recorder) == [("a", 0.0), ("b", 0.0), ("a", 11.0), ("b", 11.0), ("c", 12.0), ("d", 13.0)]


async def test_records_whose_results_are_retried_do_not_hold_back_new_ones(
    async_wait: Any, autojump_clock: MockClock
) -> None:
    recorder = Recorder(Scripted({"a": [Step(1.0, result=None), Step(1.0)]}, default=Step(1.0)))
    retry = FixedDelay(1, 10.0, retry_on_result=lambda result: result is None)
    assert sorted(await results_of(async_wait("ab", recorder, retry=retry, capacity=1, timeout=40.0))) == ["a", "b"]
    assert calls_of(recorder) == [("a", 0.0), ("b", 1.0), ("a", 11.0)]


async def test_records_that_arrive_while_others_wait_for_their_retry_start_when_one_of_them_does(
    async_wait: Any, autojump_clock: MockClock
) -> None:
    async def source() -> Any:
        yield "a"
        yield "b"
        await trio.sleep(5.0)
        yield "c"

    recorder = Recorder(Scripted({"a": MISS, "b": [MISS, Step(0.0)]}, default=Step(1.0)))
    retry = ExponentialBackoff(2, initial=10.0, maximum=30.0, multiplier=3.0, jitter=0.0)
    async with async_wait(source(), recorder, capacity=2, timeout=inf, retry=retry) as results:
        await trio.sleep(12.0)
    assert calls_of(recorder) == [("a", 0.0), ("b", 0.0), ("a", 11.0), ("b", 11.0), ("c", 11.0)]
    assert results.statistics().running == 0


@pytest.mark.parametrize("capacity", [1, 4])
@pytest.mark.parametrize("group", [None, 5])
async def test_a_service_that_is_down_is_not_hammered(
    async_wait: Any, group: int | None, capacity: int, autojump_clock: MockClock
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


async def test_a_record_gets_a_slot_again_before_younger_ones(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted({"a": [MISS, Step(1.0)]}, default=Step(6.0)))
    retry = FixedDelay(1, 5.5)
    async with unordered_wait("abcdefgh", recorder, retry=retry, capacity=2, timeout=7.75) as results:
        assert len([result async for result in results]) == 8
    first_five = sorted(calls_of(recorder)[:5], key=itemgetter(1, 0))  # those of one instant start in any order
    assert first_five == [("a", 0.0), ("b", 0.0), ("c", 1.0), ("d", 6.0), ("a", 7.0)]
    numbers = results.statistics()
    assert numbers.slot_wait_seconds == 1.0 + 6.0 + 0.5 + 8.0 + 12.0 + 14.0 + 18.0
    assert numbers.latency == Histogram.of([7.5] + [6.0] * 7)
    assert (numbers.peak_running, numbers.timed_out) == (2, 0)


async def test_a_retry_that_is_cancelled_while_it_waits_for_a_slot_has_waited(autojump_clock: MockClock) -> None:
    script = Scripted({"a": [MISS, Step(1.0)]}, default=Step(10.0))
    with trio.move_on_after(7.0):
        async with AsyncWaitOperator(
            script, source="xab", retry=FixedDelay(1, 3.0), capacity=2, timeout=inf
        ) as operator:
            await trio.sleep_forever()
    waits = {"a": 7.0 - 4.0, "b": 1.0}
    assert operator.statistics().slot_wait_seconds == sum(waits.values())


async def test_running_excludes_records_without_a_slot(autojump_clock: MockClock) -> None:
    script = Scripted({"a": [MISS, Step(1.0)]}, default=Step(3.0))
    async with AsyncWaitOperator(script, source="a", retry=FixedDelay(1, 5.0), timeout=inf) as operator:
        seen = []
        for seconds in (0.5, 1.0, 4.0, 1.0):
            await trio.sleep(seconds)
            numbers = operator.statistics()
            seen.append((trio.current_time(), numbers.running, numbers.buffered))
    assert seen == [(0.5, 1, 1), (1.5, 0, 1), (5.5, 0, 1), (6.5, 1, 1)]


@pytest.mark.parametrize(("delay", "calls"), [(2.75, 2), (3.0, 1), (60.0, 1)])
async def test_a_record_whose_backoff_would_end_at_its_deadline_or_later_times_out_now(
    delay: float, calls: int, async_wait: Any, autojump_clock: MockClock
) -> None:
    recorder = Recorder(Scripted(default=MISS))

    async def replace(value: str) -> str:
        return f"no {value} at {trio.current_time()}"

    options: Any = {"retry": FixedDelay(9, delay), "capacity": 1, "timeout": 4.0, "on_timeout": replace}
    end = 4.0 if calls == 2 else 1.0
    assert await results_of(async_wait("a", recorder, **options)) == [f"no a at {end}"]
    assert len(recorder.calls) == calls


async def test_the_timeout_of_a_retry_that_would_begin_too_late_has_the_last_error_as_its_cause(
    async_wait: Any, autojump_clock: MockClock
) -> None:
    script = Scripted({"a": [Step(1.0, error=LookupError("first")), Step(1.0, error=LookupError("second"))]})
    with pytest.raises(ElementTimeoutError, match=r"within its timeout of 4\.5 s") as caught:
        await results_of(async_wait("a", script, retry=FixedDelay(9, 2.0), timeout=4.5))
    assert str(caught.value.__cause__) == "second"
    assert trio.current_time() == 4.0


async def test_a_result_that_is_retried_is_no_cause(async_wait: Any, autojump_clock: MockClock) -> None:
    retry = FixedDelay(9, 5.0, retry_on_result=lambda result: True)
    with pytest.raises(ElementTimeoutError) as caught:
        await results_of(async_wait("a", Scripted(default=Step(1.0)), retry=retry, timeout=4.5))
    assert caught.value.__cause__ is None
    assert trio.current_time() == 1.0


async def test_a_result_at_the_instant_of_the_deadline_of_its_retry_is_not_lost(
    async_wait: Any, autojump_clock: MockClock
) -> None:
    """FLINK-40456."""
    script = Scripted({"a": [MISS, Step(1.0)]})

    async def shielded(value: str) -> str:
        with trio.CancelScope(shield=True):
            return await script(value)

    async with async_wait("a", shielded, retry=FixedDelay(1, 2.0), timeout=4.0) as results:
        assert [result async for result in results] == ["a"]
    assert (results.statistics().completed, results.statistics().timed_out) == (1, 0)
    assert trio.current_time() == 4.0


async def test_two_records_of_one_key_never_run_at_once(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted({"a1": [MISS, Step(1.0)]}, default=Step(1.0)))
    async with keyed_wait(
        ["a1", "a2", "b1"],
        recorder,
        key=lambda value: value[0],
        retry=FixedDelay(1, 10.0),
        timeout=inf,
    ) as results:
        assert [result async for result in results] == ["b1", "a1", "a2"]
    assert calls_of(recorder) == [("a1", 0.0), ("b1", 0.0), ("a1", 11.0), ("a2", 12.0)]


async def test_a_record_without_a_slot_is_cancelled_and_stays_in_the_snapshot(
    autojump_clock: MockClock, nothing_left: Any
) -> None:
    script = Scripted({"a": MISS, "b": MISS}, default=Step(60.0))
    observer = StepRecorder()
    with nothing_left():
        async with AsyncWaitOperator(
            script,
            source="xyabc",
            retry=FixedDelay(1, 2.0),
            capacity=3,
            timeout=inf,
            observer=observer,
        ) as operator:
            await trio.sleep(5.0)  # a and b wait for the slot of c
    assert [each.element for each in operator.snapshot().elements] == ["x", "y", "a", "b", "c"]
    numbers = operator.statistics()
    assert (numbers.cancelled, numbers.running, numbers.peak_running) == (5, 0, 3)
    assert sorted(step[3] for step in observer.steps if step[0] == "cancelled") == ["a", "b", "c", "x", "y"]


async def test_after_a_failure_no_record_takes_a_slot_again(raised_by: Any, autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted({"x": Step(60.0), "a": MISS, "b": Step(5.0, error=OSError)}))
    options: Any = {"retry": FixedDelay(1, 2.0, retry_on=LookupError), "timeout": inf}
    operator = AsyncWaitOperator(recorder, source="xab", capacity=2, **options)
    assert isinstance(await raised_by(operator, wait_for_ever), OSError)
    assert calls_of(recorder) == [("x", 0.0), ("a", 0.0), ("b", 1.0)]


async def test_after_the_output_was_closed_no_record_takes_a_slot_again(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted({"a": MISS}, default=Step(5.0)))
    options: Any = {"retry": FixedDelay(1, 2.0), "timeout": inf, "capacity": 2}
    async with AsyncWaitOperator(recorder, source="xabc", **options) as operator:
        await trio.sleep(2.0)
        operator.output.close()
        await trio.sleep(20.0)
    assert calls_of(recorder) == [("x", 0.0), ("a", 0.0), ("b", 1.0)]


async def test_a_retry_passes_the_gates_before_new_records(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted({"a": [MISS, Step(1.0)]}, default=Step(1.0)))
    options: Any = {"retry": FixedDelay(1, 3.0), "timeout": 5.5, "capacity": 1}
    out = await results_of(unordered_wait("abcd", recorder, gate=RateLimit(0.25), **options))
    assert calls_of(recorder) == [("a", 0.0), ("a", 4.0), ("b", 8.0), ("c", 12.0), ("d", 16.0)]
    assert out == ["a", "b", "c", "d"]


async def test_a_timeout_without_a_running_call_is_no_overload(autojump_clock: MockClock) -> None:
    gate = CircuitBreaker(calls=1)
    retry = FixedDelay(9, 60.0, retry_on_result=lambda result: result is None)
    script = Scripted(default=Step(0.0, result=None))
    options: Any = {"retry": retry, "timeout": 5.0, "on_error": "skip", "gate": gate}
    assert await results_of(ordered_wait("ab", script, **options)) == []
    assert gate.is_closed


class WaitRecorder(StepRecorder):
    def backing_off(self, *arguments: Any) -> None:
        self._record("backing_off", *arguments)

    def waits_for_slot(self, *arguments: Any) -> None:
        self._record("waits_for_slot", *arguments)

    def retried(self, *arguments: Any) -> None:
        self._record("retried", *arguments)


async def test_the_hooks_say_when_a_record_has_no_slot(autojump_clock: MockClock) -> None:
    observer = WaitRecorder()
    script = Scripted({"x": Step(60.0), "a": [MISS, Step(1.0)]}, default=Step(8.0))
    options: Any = {"retry": FixedDelay(1, 5.0), "timeout": inf, "capacity": 2}
    await results_of(unordered_wait("xab", script, observer=observer, **options))
    of_a = [step[:2] for step in observer.steps if step[3] == "a" and step[0] not in {"accepted", "emitted"}]
    assert of_a == [
        ("started", 0.0),
        ("attempt_failed", 1.0),
        ("backing_off", 1.0),
        ("waits_for_slot", 6.0),
        ("retried", 9.0),
        ("completed", 10.0),
    ]


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


async def test_a_slot_that_a_backoff_frees_does_not_wait_for_the_feeders_next_burst(autojump_clock: MockClock) -> None:
    """The buffer is full but for one record, and is read in bursts of several. One slot is left by long calls."""
    steps: dict[int, Any] = {number: fails_first(1, LookupError) for number in range(1, 64)}
    steps |= {number: Step(100.0) for number in range(-63, 0)}
    recorder = Recorder(Scripted(steps, default=Step(0.25)))
    options: Any = {"retry": FixedDelay(1, 50.0), "timeout": inf, "capacity": 64, "buffer": 63 + 64}
    assert len(await results_of(unordered_wait(range(-63, 65), recorder, **options))) == 63 + 65
    assert (64, 0.25) in calls_of(recorder)


async def test_the_verdict_leaves_out_the_time_without_a_slot(autojump_clock: MockClock) -> None:
    script = Scripted({number: [MISS, Step(1.0)] for number in range(20)})
    options: Any = {"retry": FixedDelay(1, 98.0), "timeout": inf, "capacity": 20}

    async def source() -> Any:
        for number in range(20):
            yield number
            await trio.sleep(5.0)

    async with unordered_wait(source(), script, **options) as results:
        assert len([result async for result in results]) == 20
    sentences = str(results.explain())
    assert "with a mean latency of 2 s." in sentences
    assert "0.2 of 20 slots were busy on average" in sentences  # in 100 s, 20 first attempts and a second one


async def test_a_wait_for_another_slot_is_not_subtracted_from_the_busy_time(autojump_clock: MockClock) -> None:
    """a waits from 4.0 to 8.0 for its second slot: 1 + 4 + 7 s of calls and backoff, less 3 s without a slot."""
    script = Scripted({"x": Step(60.0), "a": [MISS, Step(1.0)]}, default=Step(7.0))
    options: Any = {"retry": FixedDelay(1, 3.0), "timeout": inf, "capacity": 2}
    async with AsyncWaitOperator(script, source="xab", **options) as operator:
        await trio.sleep(10.0)
        busy = operator.totals().busy
    assert busy == 9.0 + 9.0  # until 9.0, when all records have started


@pytest.mark.parametrize("group", [None, 1])
@pytest.mark.parametrize(("new", "seconds"), [(0, 0.0), (1, 5.0)])
async def test_a_slot_waits_for_retries_if_there_is_a_new_record(
    new: int, seconds: float, group: int | None, autojump_clock: MockClock
) -> None:
    failed = set[int]()

    async def fails_once(value: Any) -> Any:
        if 0 in (value if group else [value]) and not failed:
            failed.add(0)
            raise LookupError
        return value

    options: Any = {"retry": FixedDelay(1, 5.0), "timeout": inf, "capacity": 1, "group": group}
    operator = AsyncWaitOperator(fails_once, source=range(1 + new), **options)
    async with operator:
        assert [output async for output in operator.output] == list(range(1 + new))
    assert operator.totals().retries == seconds
