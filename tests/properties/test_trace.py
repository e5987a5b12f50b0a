"""Traces of random runs are well-formed, and agree with the statistics."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import trio
from hypothesis import given
from hypothesis import strategies as st

from tests.observing import Several
from tests.properties.runs import (
    Source,
    function_of,
    function_of_groups,
    on_virtual_time,
    operator_of,
    receiving_dead_letters,
)
from tests.properties.scenarios import QUARTERS, FailureOf, Scenario, scenarios
from tests.properties.test_groups import SIZES, WAITS, options_of
from tests.trace.trace_format import check_format, seconds_of, sequences_of, spans_of
from trio_asyncio_io import AttemptTimeoutError, ElementTimeoutError, Observer, Statistics
from trio_asyncio_io.trace import TraceRecorder


async def traced(scenario: Scenario, recorder: Observer, instant: float, **options: Any) -> Statistics:
    """Run a scenario until the end of its input, its first failure, or this instant."""
    function = function_of_groups(scenario) if "group" in options else function_of(scenario)
    operator = operator_of(scenario, Source(scenario), function, observer=recorder, **options)
    pause = max(scenario.pauses)
    try:
        with trio.move_on_after(instant):
            async with operator, receiving_dead_letters(operator, []):
                async for _ in operator.output:
                    await trio.sleep(pause)
    except (FailureOf, AttemptTimeoutError, ElementTimeoutError):
        pass
    return operator.statistics()


@given(scenarios(), st.just(math.inf) | QUARTERS)
def test_spans_nest_and_agree_with_the_statistics(scenario: Scenario, instant: float) -> None:
    async def body() -> None:
        recorder = TraceRecorder(values=True)
        numbers = await traced(scenario, recorder, instant)
        trace = recorder.trace()
        check_format(trace)
        check_numbers(trace, numbers, scenario)

    on_virtual_time(body)


def check_numbers(trace: Any, numbers: Statistics, scenario: Scenario) -> None:
    stays = spans_of(trace, "record")
    records = [stay for stay in stays if stay["args"]["outcome"] != "gave its slot back"]
    outcomes = Counter(record["args"]["outcome"] for record in records)
    assert outcomes["completed"] == numbers.completed
    assert outcomes["failed"] == numbers.failed
    assert outcomes["timed out"] == numbers.timed_out
    assert outcomes["cancelled"] == numbers.cancelled
    assert outcomes.total() == numbers.completed + numbers.failed + numbers.timed_out + numbers.cancelled
    attempts = spans_of(trace, "attempt")
    assert len(attempts) == len(records) + numbers.retried
    assert sum(record["args"]["attempts"] for record in records) == len(attempts)
    assert max((stay["tid"] for stay in stays), default=0) <= numbers.peak_running <= scenario.capacity
    assert seconds_of(trace, "wait for a slot") == numbers.slot_wait_seconds
    assert seconds_of(trace, "wait for the output order") == numbers.head_wait_seconds


@given(scenarios(), st.just(math.inf) | QUARTERS, SIZES, WAITS)
def test_a_call_of_a_group_is_one_span(scenario: Scenario, instant: float, size: int, wait: float) -> None:
    async def body() -> None:
        recorder = TraceRecorder()
        numbers = await traced(scenario, recorder, instant, **options_of(scenario, size, wait))
        trace = recorder.trace()
        check_format(trace)
        stays, attempts = spans_of(trace, "record"), spans_of(trace, "attempt")
        assert len(stays) == len(attempts) == numbers.groups
        assert sum(len(sequences_of(attempt)) for attempt in attempts) == numbers.grouped
        assert max((stay["tid"] for stay in stays), default=0) <= numbers.peak_running <= scenario.capacity
        outcomes = Counter(
            record["outcome"] for stay in stays for record in stay["args"].get("records", [stay["args"]])
        )
        assert (outcomes["completed"], outcomes["failed"]) == (numbers.completed, numbers.failed)
        assert (outcomes["timed out"], outcomes["cancelled"]) == (numbers.timed_out, numbers.cancelled)

    on_virtual_time(body)


@given(scenarios(), st.integers(1, 6))
def test_a_sample_of_a_run_is_a_part_of_its_whole_trace(scenario: Scenario, limit: int) -> None:
    async def body() -> None:
        recorders = TraceRecorder(), TraceRecorder(max_records=limit)
        await traced(scenario, Several(*recorders), math.inf)
        whole, sample = (recorder.trace() for recorder in recorders)
        check_format(sample)
        about = sample["otherData"]
        assert about["records"] <= limit
        assert about["records"] + about["records_left_out"] == whole["otherData"]["records"]
        sequences = {event["args"]["sequence"] for event in sample["traceEvents"] if "sequence" in event["args"]}
        assert without_slots(sample, sequences) == without_slots(whole, sequences)

    on_virtual_time(body)


def without_slots(trace: Any, sequences: set[int]) -> list[str]:
    """The events of these elements, whatever their slots. Spans that have not ended end with the recording."""
    found = [event for event in trace["traceEvents"] if event["args"].get("sequence") in sequences]
    return sorted(
        str({**event, "tid": None, "dur": None if "unfinished" in event["args"] else event.get("dur")})
        for event in found
    )
