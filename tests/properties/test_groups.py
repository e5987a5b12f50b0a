"""The option `group` against the heart, which makes single calls."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace
from typing import Any

import trio
from hypothesis import given
from hypothesis import strategies as st

from tests.properties.runs import Run, Source, function_of_groups, on_virtual_time, run, value_of
from tests.properties.scenarios import KEYS, Scenario, scenarios, without_attempt_timeout
from tests.properties.specification import expected, normalized
from tests.properties.test_operator import check_observer
from trio_asyncio_io import FixedDelay, ordered_wait

SIZES, WAITS = st.integers(1, 5), st.sampled_from([0.0, 0.25, 1.0, math.inf])
# Without deadlines, whether an element succeeds does not depend on the others in its calls
WITHOUT_DEADLINES = scenarios(timeout=math.inf, has_on_timeout=False).map(without_attempt_timeout)


def options_of(scenario: Scenario, size: int, wait: float) -> dict[str, Any]:
    return {"group": size, "group_wait": wait, "buffer": max(scenario.buffer, size)}


def check_calls(scenario: Scenario, done: Run, size: int) -> None:
    """No call has too many records, or a record twice; and no key has more than its limit in flight."""
    calls = done.recorder.calls
    assert all(1 <= len(set(call.value)) == len(call.value) <= size for call in calls)
    numbers = done.statistics
    assert numbers.groups == len(calls)
    assert numbers.grouped == sum(len(call.value) for call in calls)
    if scenario.mode == "keyed":
        for call in calls:
            running = [each for each in calls if each.started <= call.started < (each.ended or 0.0)]
            for key in range(KEYS):
                in_flight = {number for each in running for number in each.value if number % KEYS == key}
                assert len(in_flight) <= 1


@given(WITHOUT_DEADLINES, SIZES, WAITS)
def test_groups_and_single_calls_have_equal_outputs(scenario: Scenario, size: int, wait: float) -> None:
    should = expected(scenario)

    async def body() -> None:
        done = await run(scenario, function=function_of_groups(scenario), **options_of(scenario, size, wait))
        check_calls(scenario, done, size)
        assert (done.error is not None) == bool(should.failing)
        if not should.failing:
            assert normalized(scenario.mode, done.outputs) == normalized(scenario.mode, should.outputs)
            assert sorted(done.dead_letters) == sorted(should.dead_letters)
            check_observer(done)

    on_virtual_time(body)


@given(scenarios(on_error="skip"), SIZES, WAITS, st.integers(0, 12))
def test_each_record_ends_exactly_once(scenario: Scenario, size: int, wait: float, max_outputs: int) -> None:
    """With deadlines, and whether the block is left early or not."""

    async def body() -> None:
        function, options = function_of_groups(scenario), options_of(scenario, size, wait)
        done = await run(scenario, function=function, max_outputs=max_outputs, **options)
        check_calls(scenario, done, size)
        check_observer(done)
        numbers = done.statistics
        ended = numbers.completed + numbers.failed + numbers.timed_out + numbers.cancelled
        assert ended == len({number for call in done.recorder.calls for number in call.value})
        assert ended + numbers.retried == numbers.grouped
        assert numbers.running == 0
        assert min(numbers.slot_wait_seconds, numbers.group_wait_seconds, numbers.head_wait_seconds) >= -1e-9

    on_virtual_time(body)


@given(WITHOUT_DEADLINES, SIZES, WAITS, st.integers(0, 12))
def test_a_left_run_resumes_from_its_snapshot(scenario: Scenario, size: int, wait: float, k: int) -> None:
    if expected(scenario).failing:
        scenario = replace(scenario, on_error="skip")
    should = expected(scenario)
    options = options_of(scenario, size, wait)

    async def body() -> None:
        source = Source(scenario)
        first = await run(scenario, source, function_of_groups(scenario), max_outputs=k, **options)
        restored = pickle.loads(pickle.dumps(first.snapshot))
        rest = await run(scenario, source, function_of_groups(scenario), restore=restored, **options)
        done = {value_of(each.element) for each in restored.elements if each.results is not None}
        assert not done & {number for call in rest.recorder.calls for number in call.value}
        assert normalized(scenario.mode, first.outputs + rest.outputs) == normalized(scenario.mode, should.outputs)
        assert sorted(first.dead_letters + rest.dead_letters) == sorted(should.dead_letters)

    on_virtual_time(body)


@given(st.sets(st.integers(0, 19)), SIZES, WAITS, st.integers(1, 3), st.integers(0, 2))
def test_with_group_split_only_the_poisoned_records_fail(
    poisoned: set[int], size: int, wait: float, capacity: int, max_retries: int
) -> None:
    seen: list[list[int]] = []

    async def refuse(values: list[int]) -> list[int]:
        seen.append(values)
        await trio.sleep(0.25)
        if poisoned & set(values):
            raise ValueError("status 400")
        return values

    async def body() -> None:
        operator = ordered_wait(
            range(20),
            refuse,
            timeout=math.inf,
            on_error="dead_letter",
            retry=FixedDelay(max_retries, 1.0),
            capacity=capacity,
            group=size,
            group_wait=wait,
            group_split=True,
        )
        async with operator as results:
            assert [result async for result in results] == [each for each in range(20) if each not in poisoned]
            assert sorted([letter.element async for letter in results.dead_letters]) == sorted(poisoned)
        numbers = results.statistics()
        assert (numbers.groups, numbers.grouped) == (len(seen), sum(map(len, seen)))
        assert (numbers.retried, numbers.running) == (numbers.grouped - 20, 0)
        assert all(1 <= len(set(values)) == len(values) <= size for values in seen)
        for each in poisoned:  # its calls: with retries for the first group, and one for each halving
            assert sum(each in values for values in seen) <= 1 + max_retries + math.ceil(math.log2(size))

    on_virtual_time(body)
