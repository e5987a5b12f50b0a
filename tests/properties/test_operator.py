"""Compare the operator with the heart, for random latencies, limits and failures.

In all combinations of mode, retry, error policy and flatten, in one run and across a restore.
"""

from __future__ import annotations

import math
import pickle
from collections import Counter
from dataclasses import replace
from functools import partial
from heapq import heapify, heapreplace
from itertools import pairwise
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from tests.properties.runs import (
    Run,
    Source,
    function_of,
    on_virtual_time,
    operator_of,
    receiving_dead_letters,
    result_of,
    run,
)
from tests.properties.scenarios import KEYS, QUARTERS, FailureOf, Scenario, crowded_scenarios, scenarios, without_ties
from tests.properties.specification import expected, normalized, received, seen
from trio_asyncio_io import Watermark
from trio_asyncio_io.testing import Recorder, Scripted, Step

WITHOUT_TIES = (scenarios(on_error=None) | crowded_scenarios(on_error=None)).map(without_ties)


@given(WITHOUT_TIES, st.sampled_from(["raise", "skip", "handle", "skip"]))
def test_the_operator_does_what_the_heart_does_at_the_same_instants(scenario: Scenario, on_error: str) -> None:
    scenario = replace(scenario, on_error=on_error)
    operator, heart = (on_virtual_time(partial(seen, scenario, by_heart=by_heart)) for by_heart in (False, True))
    assert operator == heart


@given(scenarios())
def test_outputs_match_those_of_the_heart(scenario: Scenario) -> None:
    """Also when several things happen at one instant, for which the order within an instant is free."""
    should = expected(scenario)

    async def body() -> None:
        done = await run(scenario)
        assert (done.error is not None) == bool(should.failing)
        if not should.failing:
            assert normalized(scenario.mode, done.outputs) == normalized(scenario.mode, should.outputs)
            assert sorted(done.dead_letters) == sorted(should.dead_letters)
            if scenario.mode == "ordered":
                assert done.dead_letters == should.dead_letters
            assert len(done.snapshot) == 0
            assert done.snapshot.taken == len(scenario.elements)
        if isinstance(done.error, FailureOf):
            assert done.error.args[0] in should.failing

    on_virtual_time(body)


@given(scenarios(), st.just(100) | st.integers(0, 12))
def test_statistics_are_consistent(scenario: Scenario, max_outputs: int) -> None:
    """At the end of input, after a failure, and after leaving early."""

    async def body() -> None:
        done = await run(scenario, max_outputs=max_outputs)
        numbers = done.statistics
        ended = numbers.completed + numbers.failed + numbers.timed_out + numbers.cancelled
        assert ended + numbers.retried == len(done.recorder.calls)
        assert ended == len(set(done.recorder.values))
        assert numbers.emitted == sum(not isinstance(output, Watermark) for output in done.outputs)
        assert numbers.running == 0
        assert numbers.dead_lettered >= len(done.dead_letters)
        check_observer(done)
        assert numbers.skipped <= numbers.failed + numbers.timed_out
        assert min(numbers.slot_wait_seconds, numbers.head_wait_seconds) >= 0
        assert numbers.latency.count == ended - numbers.cancelled
        assert numbers.slot_wait.count == ended
        if done.error is None and len(done.outputs) < max_outputs:
            assert (numbers.buffered, numbers.cancelled) == (0, 0)
            assert ended == sum(element is not None for element in scenario.elements)

    on_virtual_time(body)


def check_observer(done: Run) -> None:
    numbers, seen = done.statistics, Counter(step[0] for step in done.steps)
    assert seen["completed"] == numbers.completed
    assert seen["timed_out"] == numbers.timed_out
    assert seen["cancelled"] == numbers.cancelled
    assert seen["started"] == numbers.completed + numbers.failed + numbers.timed_out + numbers.cancelled
    assert numbers.failed <= seen["failed"] <= numbers.failed + numbers.timed_out
    assert seen["emitted"] == numbers.emitted + len(done.dead_letters)
    assert seen["attempt_failed"] >= numbers.failed


@pytest.mark.slow
@given(scenarios(), st.integers(1, 4), st.integers(0, 6))
def test_a_run_left_after_k_outputs_resumes_from_its_snapshot(scenario: Scenario, capacity: int, more: int) -> None:
    """For every k, with a pickled snapshot and other limits, which may be smaller."""
    if expected(scenario).failing:
        scenario = replace(scenario, on_error="skip")
    should = expected(scenario)
    outputs = normalized(scenario.mode, should.outputs)

    async def body(k: int) -> int:
        source = Source(scenario)
        first = await run(scenario, source, max_outputs=k)
        restored = pickle.loads(pickle.dumps(first.snapshot))
        rest = await run(scenario, source, restore=restored, capacity=capacity, buffer=capacity + more)
        assert normalized(scenario.mode, first.outputs + rest.outputs) == outputs
        assert sorted(first.dead_letters + rest.dead_letters) == sorted(should.dead_letters)
        assert rest.snapshot.taken == len(scenario.elements)
        return len(first.outputs)

    k = 0
    while on_virtual_time(lambda: body(k)) == k:  # noqa: B023 - called at once
        k += 1


@given(scenarios(on_error="skip"), st.integers(0, 12), st.booleans())
def test_the_heart_and_the_operator_resume_each_others_snapshots(scenario: Scenario, k: int, is_first: bool) -> None:
    should = normalized(scenario.mode, expected(scenario).outputs)

    async def body() -> None:
        source = Source(scenario)
        before, snapshot = await received(scenario, source, k, by_heart=is_first)
        after, empty = await received(scenario, source, math.inf, by_heart=not is_first, restore=snapshot)
        assert normalized(scenario.mode, before + after) == should
        assert (len(empty), empty.taken) == (0, len(scenario.elements))

    on_virtual_time(body)


@given(scenarios(on_error="raise", has_on_timeout=False))
def test_a_failed_run_resumes_from_its_snapshot_with_a_repaired_function(scenario: Scenario) -> None:
    good = Scripted(
        {
            number: Step(0.0, result_of(scenario, number, element.rows))
            for number, element in enumerate(scenario.elements)
            if element is not None
        }
    )
    should = expected(scenario, good)

    async def body() -> None:
        source = Source(scenario)
        failed = await run(scenario, source)
        rest = await run(scenario, source, good, restore=pickle.loads(pickle.dumps(failed.snapshot)))
        assert rest.error is None
        assert normalized(scenario.mode, failed.outputs + rest.outputs) == normalized(scenario.mode, should.outputs)

    on_virtual_time(body)


@given(scenarios(), QUARTERS)
def test_a_cancelled_run_resumes_from_its_snapshot(scenario: Scenario, instant: float) -> None:
    if expected(scenario).failing:
        scenario = replace(scenario, on_error="skip")
    should = expected(scenario)

    async def body() -> None:
        source = Source(scenario)
        recorder = Recorder(function_of(scenario))
        operator = operator_of(scenario, source, recorder)
        received: list[Any] = []
        dead_letters: list[Any] = []
        with trio.move_on_after(instant):
            async with operator, receiving_dead_letters(operator, dead_letters):
                async for output in operator.output:
                    received.append(output)  # noqa: PERF401 - what was received before counts
        assert recorder.running == operator.statistics().running == 0
        rest = await run(scenario, source, restore=operator.snapshot())
        assert normalized(scenario.mode, received + rest.outputs) == normalized(scenario.mode, should.outputs)
        assert sorted(dead_letters + rest.dead_letters) == sorted(should.dead_letters)

    on_virtual_time(body)


@given(scenarios(gaps=(), pauses=(0.0,), timeout=math.inf, retry=None, on_error="skip", buffer=100))
def test_a_free_slot_is_used_immediately(scenario: Scenario) -> None:
    """Invocations start and end at the instants of a greedy schedule."""
    latencies = [element.attempts[0][0] for element in scenario.elements if element is not None]
    free = [0.0] * scenario.capacity
    heapify(free)
    expected_calls = []
    for latency in latencies:
        expected_calls.append((free[0], free[0] + latency))
        heapreplace(free, free[0] + latency)

    async def body() -> None:
        mode = "ordered" if scenario.mode == "keyed" else scenario.mode
        done = await run(replace(scenario, mode=mode))
        assert [(call.started, call.ended) for call in done.recorder.calls] == expected_calls

    on_virtual_time(body)


@given(scenarios(mode="keyed"))
def test_two_records_of_one_key_never_run_at_once(scenario: Scenario) -> None:
    async def body() -> None:
        done = await run(scenario)
        for key in range(KEYS):
            calls = [call for call in done.recorder.calls if call.value % KEYS == key]
            assert [call.value for call in calls] == sorted(call.value for call in calls)
            for before, after in pairwise(calls):
                assert before.ended is not None
                assert before.ended <= after.started

    on_virtual_time(body)
