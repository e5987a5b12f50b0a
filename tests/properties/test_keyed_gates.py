"""Properties of gates per key: limits hold for each key, keys do not block one another, and nothing is lost."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from tests.plain_gates import AtMost, Throttle
from trio_asyncio_io import AsyncWaitOperator, FixedDelay
from trio_asyncio_io.gates import Outcome, PerKey, RateLimit
from trio_asyncio_io.testing import Recorder, Scripted, Step

ROUNDING = 1e-6
RATE = 0.5
AT_ONCE = 2
CLOSED = 1_000.0

# A record: its key, and the seconds of its call
records = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([0.0, 0.5, 1.0, 3.0])), max_size=16)


def outcome(error: Exception) -> Outcome:
    return Outcome("throttled", CLOSED, error)


def key_of(value: tuple[str, int]) -> str:
    return value[0]


def run(values: list[Any], recorder: Any, **options: Any) -> tuple[list[Any], Any]:
    """The outputs and the statistics of a run on virtual time."""

    async def main() -> tuple[list[Any], Any]:
        async with AsyncWaitOperator(recorder, source=values, timeout=9.0, **options) as operator:
            results = [result async for result in operator.output]
        return results, operator.statistics()

    return trio.run(main, clock=MockClock(autojump_threshold=0))


def peak_of(calls: list[Any]) -> int:
    changes = sorted([(call.started, 1) for call in calls] + [(call.ended, -1) for call in calls])
    running = peak = 0
    for _, change in changes:
        running += change
        peak = max(peak, running)
    return peak


@given(
    records=records,
    failing=st.sets(st.integers(0, 15), max_size=5),
    mode=st.sampled_from(["ordered", "unordered"]),
    capacity=st.integers(1, 3),
    has_common=st.booleans(),
)
def test_each_key_has_its_limits_and_nothing_is_lost(
    *,
    records: list[tuple[str, float]],
    failing: set[int],
    mode: Any,
    capacity: int,
    has_common: bool,
) -> None:
    values = [(key, number) for number, (key, _) in enumerate(records)]
    steps = {
        value: [*([Step(seconds, error=OSError)] if value[1] in failing else []), Step(seconds)]
        for value, (_, seconds) in zip(values, records, strict=True)
    }
    recorder: Recorder[Any, Any] = Recorder(Scripted(steps))
    at_once = AtMost(min(AT_ONCE, capacity))
    results, numbers = run(
        values,
        recorder,
        mode=mode,
        capacity=capacity,
        retry=FixedDelay(1, 0.5),
        gate=[*([RateLimit(2.0)] if has_common else []), PerKey([RateLimit(RATE), at_once], key=key_of)],
    )
    assert Counter(results) == Counter(values)
    if mode == "ordered":
        assert results == values
    assert (numbers.running, numbers.completed) == (0, len(values))
    assert numbers.peak_running <= capacity
    for key in "abc":
        calls = [call for call in recorder.calls if call.value[0] == key]
        starts = sorted(call.started for call in calls)
        assert all(later - earlier >= 1 / RATE - ROUNDING for earlier, later in pairwise(starts))
        assert peak_of(calls) <= AT_ONCE
    if has_common:
        starts = sorted(call.started for call in recorder.calls)
        assert all(later - earlier >= 0.5 - ROUNDING for earlier, later in pairwise(starts))


@given(records=records, closed=st.sets(st.integers(0, 15)), capacity=st.integers(1, 3))
def test_calls_of_other_keys_never_wait_for_a_key_that_is_closed(
    records: list[tuple[str, float]], closed: set[int], capacity: int
) -> None:
    """They start at the same instants as without its records."""
    values = [("closed" if number in closed else key, number) for number, (key, _) in enumerate(records)]
    others = [value for value in values if value[0] != "closed"]
    steps = {
        value: Step(0.0, error=OSError) if value[0] == "closed" else Step(seconds)
        for value, (_, seconds) in zip(values, records, strict=True)
    }

    def starts_of(values: list[Any]) -> dict[Any, float]:
        recorder: Recorder[Any, Any] = Recorder(Scripted(steps))
        gate = PerKey(Throttle(classify=outcome), key=key_of)
        run(values, recorder, mode="unordered", capacity=capacity, gate=gate, on_error="skip")
        return {call.value: call.started for call in recorder.calls if call.value[0] != "closed"}

    assert starts_of(values) == starts_of(others)
