"""Slots that records give back during long backoffs, with `yield_slot_after`."""

from __future__ import annotations

from math import inf
from operator import itemgetter
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.observing import StepRecorder
from trio_asyncio_io import (
    AsyncWaitOperator,
    DelayList,
    ElementTimeoutError,
    FixedDelay,
    Histogram,
    keyed_wait,
    ordered_wait,
    unordered_wait,
)
from trio_asyncio_io.gates import CircuitBreaker, RateLimit
from trio_asyncio_io.testing import Recorder, Scripted, Step, fails_first

MISS = Step(1.0, error=LookupError)


def calls_of(recorder: Recorder[Any, Any]) -> list[tuple[Any, float]]:
    return [(call.value, call.started) for call in recorder.calls]


async def wait_for_ever(operator: Any) -> None:
    await trio.sleep_forever()


async def results_of(results: Any) -> list[Any]:
    async with results as channel:
        return [result async for result in channel]


async def test_another_record_runs_during_a_long_backoff(async_wait: Any, autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted({"a": [MISS, Step(1.0)]}, default=Step(1.0)))
    options = {"retry": FixedDelay(1, 10.0), "yield_slot_after": 10.0, "capacity": 1, "timeout": 20.0}
    assert sorted(await results_of(async_wait("abc", recorder, **options))) == ["a", "b", "c"]
    assert calls_of(recorder) == [("a", 0.0), ("b", 1.0), ("c", 2.0), ("a", 11.0)]
    assert recorder.peak_running == 1


@pytest.mark.parametrize("after", [None, 10.5], ids=["off", "longer"])
async def test_a_shorter_backoff_keeps_its_slot(after: float | None, autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted({"a": [MISS, Step(1.0)]}, default=Step(1.0)))
    options: Any = {"retry": FixedDelay(1, 10.0), "yield_slot_after": after, "capacity": 1, "timeout": 20.0}
    await results_of(ordered_wait("ab", recorder, **options))
    assert calls_of(recorder) == [("a", 0.0), ("a", 11.0), ("b", 12.0)]


async def test_a_record_gets_a_slot_again_before_younger_ones(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted({"a": [MISS, Step(1.0)], "b": [MISS, Step(1.0)]}, default=Step(6.0)))
    retry = FixedDelay(1, 5.0)
    async with unordered_wait(
        "abcdefgh", recorder, retry=retry, yield_slot_after=0.0, capacity=2, timeout=7.25
    ) as results:
        assert len([result async for result in results]) == 8
    first_six = sorted(calls_of(recorder)[:6], key=itemgetter(1, 0))  # those of one instant start in any order
    assert first_six == [("a", 0.0), ("b", 0.0), ("c", 1.0), ("d", 1.0), ("a", 7.0), ("b", 7.0)]
    numbers = results.statistics()
    assert numbers.slot_wait_seconds == 2 * 1.0 + 2 * 1.0 + 2 * 8.0 + 2 * 14.0
    assert numbers.latency == Histogram.of([7.0] * 2 + [6.0] * 6)
    assert (numbers.peak_running, numbers.timed_out) == (2, 0)


async def test_running_excludes_records_without_a_slot(autojump_clock: MockClock) -> None:
    script = Scripted({"a": [MISS, Step(1.0)]}, default=Step(3.0))
    async with AsyncWaitOperator(
        script, source="a", retry=FixedDelay(1, 5.0), yield_slot_after=1.0, timeout=inf
    ) as operator:
        seen = []
        for seconds in (0.5, 1.0, 4.0, 1.0):
            await trio.sleep(seconds)
            numbers = operator.statistics()
            seen.append((trio.current_time(), numbers.running, numbers.buffered))
    assert seen == [(0.5, 1, 1), (1.5, 0, 1), (5.5, 0, 1), (6.5, 1, 1)]


async def test_the_backoff_counts_towards_the_timeout(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted({"a": MISS}, default=Step(4.0)))

    async def replace(value: str) -> str:
        return f"no {value} at {trio.current_time()}"

    out = await results_of(
        ordered_wait(
            "ab", recorder, retry=FixedDelay(9, 60.0), yield_slot_after=0.0, capacity=1, timeout=4.5, on_timeout=replace
        )
    )
    assert out == ["no a at 5.0", "b"]  # its deadline expired at 4.5, and the only slot was free at 5.0
    assert calls_of(recorder) == [("a", 0.0), ("b", 1.0)]


async def test_without_on_timeout_the_record_fails(autojump_clock: MockClock) -> None:
    options: Any = {"retry": FixedDelay(9, 60.0), "yield_slot_after": 0.0, "timeout": 4.5}
    with pytest.raises(ElementTimeoutError):
        await results_of(ordered_wait("a", Scripted({"a": MISS}), **options))
    assert trio.current_time() == 4.5


async def test_two_records_of_one_key_never_run_at_once(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted({"a1": [MISS, Step(1.0)]}, default=Step(1.0)))
    async with keyed_wait(
        ["a1", "a2", "b1"],
        recorder,
        key=lambda value: value[0],
        retry=FixedDelay(1, 10.0),
        yield_slot_after=1.0,
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
            source="abc",
            retry=DelayList([2.0]),
            yield_slot_after=1.0,
            capacity=1,
            timeout=inf,
            observer=observer,
        ) as operator:
            await trio.sleep(5.0)  # a and b wait for the slot of c
    assert [each.element for each in operator.snapshot().elements] == ["a", "b", "c"]
    numbers = operator.statistics()
    assert (numbers.cancelled, numbers.running, numbers.peak_running) == (3, 0, 1)
    assert sorted(step[3] for step in observer.steps if step[0] == "cancelled") == ["a", "b", "c"]


async def test_after_a_failure_no_record_takes_a_slot_again(raised_by: Any, autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted({"a": MISS, "b": Step(5.0, error=OSError)}))
    options: Any = {"retry": FixedDelay(1, 2.0, retry_on=LookupError), "yield_slot_after": 1.0, "timeout": inf}
    operator = AsyncWaitOperator(recorder, source="ab", capacity=1, **options)
    assert isinstance(await raised_by(operator, wait_for_ever), OSError)
    assert calls_of(recorder) == [("a", 0.0), ("b", 1.0)]


async def test_after_the_output_was_closed_no_record_takes_a_slot_again(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted({"a": MISS}, default=Step(5.0)))
    options: Any = {"retry": FixedDelay(1, 2.0), "yield_slot_after": 1.0, "timeout": inf, "capacity": 1}
    async with AsyncWaitOperator(recorder, source="abc", **options) as operator:
        await trio.sleep(2.0)
        operator.output.close()
        await trio.sleep(20.0)
    assert calls_of(recorder) == [("a", 0.0), ("b", 1.0)]


async def test_a_record_passes_the_gates_when_it_has_a_slot_again(autojump_clock: MockClock) -> None:
    recorder = Recorder(Scripted({"a": [MISS, Step(1.0)]}, default=Step(1.0)))
    options: Any = {"retry": FixedDelay(1, 3.0), "yield_slot_after": 1.0, "timeout": 5.5, "capacity": 1}
    out = await results_of(unordered_wait("abcd", recorder, gate=RateLimit(0.25), **options))
    assert calls_of(recorder) == [("a", 0.0), ("b", 4.0), ("a", 8.0), ("c", 12.0), ("d", 16.0)]
    assert out == ["b", "a", "c", "d"]


@pytest.mark.parametrize("after", [None, 1.0], ids=["with its slot", "without its slot"])
async def test_a_deadline_that_expires_in_a_backoff_is_no_overload(
    after: float | None, autojump_clock: MockClock
) -> None:
    gate = CircuitBreaker(calls=1)
    retry = FixedDelay(9, 60.0, retry_on_result=lambda result: result is None)
    script = Scripted(default=Step(0.0, result=None))
    options: Any = {"retry": retry, "yield_slot_after": after, "timeout": 5.0, "on_error": "skip", "gate": gate}
    assert await results_of(ordered_wait("ab", script, **options)) == []
    assert gate.is_closed


async def test_the_hooks_say_when_a_record_has_no_slot(autojump_clock: MockClock) -> None:
    observer = StepRecorder()
    script = Scripted({"a": [MISS, Step(1.0)]}, default=Step(8.0))
    options: Any = {"retry": FixedDelay(1, 5.0), "yield_slot_after": 1.0, "timeout": inf, "capacity": 1}
    await results_of(unordered_wait("ab", script, observer=observer, **options))
    of_a = [step[:2] for step in observer.steps if step[3] == "a" and step[0] not in {"accepted", "emitted"}]
    assert of_a == [
        ("started", 0.0),
        ("attempt_failed", 1.0),
        ("slot_yielded", 1.0),
        ("slot_regained", 9.0),
        ("completed", 10.0),
    ]


async def test_a_slot_that_was_given_back_does_not_wait_for_the_feeders_next_burst(autojump_clock: MockClock) -> None:
    """The buffer is full but for one record, and is read in bursts of four."""
    misses = {number: fails_first(1, LookupError) for number in range(1, 64)}
    recorder = Recorder(Scripted(misses, default=Step(0.25)))
    options: Any = {"retry": FixedDelay(1, 50.0), "yield_slot_after": 1.0, "timeout": inf, "capacity": 1, "buffer": 64}
    assert len(await results_of(unordered_wait(range(65), recorder, **options))) == 65
    assert (64, 0.25) in calls_of(recorder)


async def test_the_verdict_leaves_out_the_time_without_a_slot(autojump_clock: MockClock) -> None:
    script = Scripted({number: [MISS, Step(1.0)] for number in range(20)})
    options: Any = {"retry": FixedDelay(1, 98.0), "yield_slot_after": 1.0, "timeout": inf, "capacity": 20}

    async def source() -> Any:
        for number in range(20):
            yield number
            await trio.sleep(5.0)

    async with unordered_wait(source(), script, **options) as results:
        assert len([result async for result in results]) == 20
    sentences = str(results.explain())
    assert "with a mean latency of 2 s." in sentences
    assert "on average 0.2 slots were busy" in sentences  # in 100 s, 20 first attempts and a second one


async def test_a_wait_for_another_slot_is_not_subtracted_from_the_busy_time(autojump_clock: MockClock) -> None:
    """a waits from 4.0 to 8.0 for its second slot: 1 + 4 + 7 s of calls and backoff, less 3 s without a slot."""
    script = Scripted({"a": [MISS, Step(1.0)]}, default=Step(7.0))
    options: Any = {"retry": FixedDelay(1, 3.0), "yield_slot_after": 1.0, "timeout": inf, "capacity": 1}
    async with AsyncWaitOperator(script, source="ab", **options) as operator:
        await trio.sleep(10.0)
        busy = operator.totals().busy
    assert busy == 9.0


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (-1.0, "yield_slot_after must be"),
        (float("nan"), "yield_slot_after must be"),
        ("5", "yield_slot_after must be"),
    ],
    ids=["negative", "nan", "text"],
)
def test_a_yield_slot_after_out_of_range_is_refused(value: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        ordered_wait("a", Scripted(), timeout=1.0, yield_slot_after=value)
