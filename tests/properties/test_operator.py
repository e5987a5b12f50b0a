"""The operator against a model: whatever the latencies, limits and failures, the outputs are those that it foretells.

Latencies are multiples of a quarter of a second, and deadlines lie between them: on the mock clock all instants are
exact, and nothing ever happens at the very deadline.
"""

from __future__ import annotations

import math
import pickle
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from heapq import heapify, heapreplace
from itertools import cycle, pairwise
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from trio_asyncio_io import (
    AsyncWaitOperator,
    ElementTimeoutError,
    FixedDelay,
    Snapshot,
    Statistics,
    StreamRecord,
    Watermark,
)
from trio_asyncio_io.testing import Recorder, Scripted, Step

KEYS = 3


class FailureOf(Exception):  # noqa: N818 - reads as what it is
    """The exception of the element with this number."""


@dataclass(frozen=True)
class Element:
    """One record: what each attempt does, and how many rows its result has."""

    attempts: tuple[tuple[float, bool], ...]
    rows: int
    is_bare: bool


@dataclass(frozen=True)
class Scenario:
    """All that one run depends on. None among the elements is a watermark."""

    mode: str
    elements: tuple[Element | None, ...]
    capacity: int
    buffer: int
    timeout: float
    retry: FixedDelay | None
    on_error: str
    has_on_timeout: bool
    handler_latency: float
    flatten: bool
    gaps: tuple[float, ...]
    pauses: tuple[float, ...]


QUARTERS = st.integers(0, 12).map(lambda number: number / 4)
FEW_QUARTERS = st.sampled_from([0.0, 0.0, 0.0, 0.25, 1.0])
ELEMENTS = st.builds(
    Element,
    attempts=st.lists(st.tuples(QUARTERS, st.sampled_from([True, True, False])), min_size=1, max_size=3).map(tuple),
    rows=st.integers(0, 3),
    is_bare=st.booleans(),
)


@st.composite
def scenarios(draw: st.DrawFn, **fixed: Any) -> Scenario:
    capacity = draw(st.integers(1, 4))
    drawn = {
        "mode": draw(st.sampled_from(["ordered", "unordered", "keyed"])),
        "elements": tuple(draw(st.lists(ELEMENTS | ELEMENTS | ELEMENTS | st.none(), max_size=12))),
        "capacity": capacity,
        "buffer": capacity + draw(st.integers(0, 6)),
        "timeout": draw(st.just(math.inf) | st.integers(0, 20).map(lambda number: number / 4 + 0.125)),
        "retry": draw(st.none() | st.builds(FixedDelay, st.integers(0, 2), FEW_QUARTERS)),
        "on_error": draw(st.sampled_from(["raise", "skip", "handle"])),
        "has_on_timeout": draw(st.booleans()),
        "handler_latency": draw(FEW_QUARTERS),
        "flatten": draw(st.booleans()),
        "gaps": tuple(draw(st.lists(FEW_QUARTERS, max_size=3))),
        "pauses": tuple(draw(st.lists(FEW_QUARTERS, min_size=1, max_size=3))),
    }
    return Scenario(**{**drawn, **fixed})


# The model.


def foretold(scenario: Scenario, number: int) -> list[Any] | None:
    """The outputs of one record, None if it fails."""
    element = scenario.elements[number]
    retries = scenario.retry.max_retries if scenario.retry else 0
    elapsed, is_good, is_late = 0.0, False, False
    for attempt in range(retries + 1):
        latency, is_good = element.attempts[min(attempt, len(element.attempts) - 1)]
        elapsed += latency + (scenario.retry.delay if attempt and scenario.retry else 0.0)
        is_late = elapsed > scenario.timeout
        if is_good or is_late:
            break
    if is_good and not is_late:
        return rows_of(scenario, number, element.rows)
    in_time = scenario.handler_latency < scenario.timeout
    if is_late and in_time and scenario.has_on_timeout:
        return rows_of(scenario, number, 1, "late")
    if scenario.on_error == "handle" and in_time:
        return rows_of(scenario, number, 1, "handled")
    return [] if scenario.on_error == "skip" else None


def rows_of(scenario: Scenario, number: int, rows: int, what: str = "row") -> list[Any]:
    values = [(number, what, row) for row in range(rows)] if scenario.flatten else [(number, what)]
    return values if scenario.elements[number].is_bare else [StreamRecord(value, number) for value in values]


def foretold_outputs(scenario: Scenario, of: Callable[[Scenario, int], list[Any] | None] = foretold) -> list[Any]:
    """All outputs in the order of the source; a failure has none."""
    out: list[Any] = []
    for number, element in enumerate(scenario.elements):
        out.extend([Watermark(number)] if element is None else of(scenario, number) or [])
    return out


def as_promised(mode: str, outputs: list[Any]) -> Any:
    """The outputs without the freedom that the mode has: equal runs are equal, whatever overtook what."""
    if mode == "ordered":
        return outputs
    segments: list[Any] = [defaultdict(list)]
    for output in outputs:
        if isinstance(output, Watermark):
            segments.extend((output, defaultdict(list)))
        else:
            number = value_of(output)[0]
            segments[-1][number if mode == "unordered" else number % KEYS].append(output)
    return segments


def value_of(output: Any) -> Any:
    return output.value if isinstance(output, StreamRecord) else output


# A run.


class Source:
    """The elements of a scenario, some of them after a gap. It can be read on after a run was left."""

    def __init__(self, scenario: Scenario) -> None:
        self._numbers = iter(enumerate(scenario.elements))
        self._gaps = cycle(scenario.gaps) if scenario.gaps else None

    def __iter__(self) -> Iterator[Any]:
        return self

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    def __next__(self) -> Any:
        number, element = next(self._numbers)
        if element is None:
            return Watermark(number)
        return number if element.is_bare else StreamRecord(number, number)

    async def __anext__(self) -> Any:
        if self._gaps is not None:
            await trio.sleep(next(self._gaps))
        for element in self:
            return element
        raise StopAsyncIteration


def function_of(scenario: Scenario) -> Scripted[int]:
    return Scripted(
        {
            number: [
                Step(latency, result_of(scenario, number, element.rows), None if is_good else FailureOf(number))
                for latency, is_good in element.attempts
            ]
            for number, element in enumerate(scenario.elements)
            if element is not None
        }
    )


def result_of(scenario: Scenario, number: int, rows: int, what: str = "row") -> Any:
    return [(number, what, row) for row in range(rows)] if scenario.flatten else (number, what)


def handler_of(scenario: Scenario, what: str) -> Callable[..., Awaitable[Any]]:
    async def handler(number: int, error: Exception | None = None) -> Any:
        await trio.sleep(scenario.handler_latency)
        return result_of(scenario, number, 1, what)

    return handler


def operator_of(scenario: Scenario, source: Source, function: Any, **options: Any) -> AsyncWaitOperator[Any, Any]:
    return AsyncWaitOperator(
        function,
        source=source if scenario.gaps else iter(source),
        mode=scenario.mode,
        key=(lambda number: number % KEYS) if scenario.mode == "keyed" else None,
        **{
            "capacity": scenario.capacity,
            "buffer": scenario.buffer,
            "timeout": scenario.timeout,
            "retry": scenario.retry,
            "on_error": handler_of(scenario, "handled") if scenario.on_error == "handle" else scenario.on_error,
            "on_timeout": handler_of(scenario, "late") if scenario.has_on_timeout else None,
            "flatten": scenario.flatten,
            **options,
        },
    )


@dataclass
class Run:
    """What came of a run: the outputs, the snapshot at its end, the numbers, and the exception if there was one."""

    outputs: list[Any]
    snapshot: Snapshot
    statistics: Statistics
    recorder: Recorder[Any, Any]
    error: Exception | None = None


async def run(
    scenario: Scenario, source: Source | None = None, function: Any = None, most: float = math.inf, **options: Any
) -> Run:
    """Receive at most so many outputs, with pauses in between, and take the snapshot after the last one."""
    living = trio.lowlevel.current_statistics().tasks_living
    recorder = Recorder(function or function_of(scenario))
    operator = operator_of(scenario, source or Source(scenario), recorder, **options)
    outputs: list[Any] = []
    snapshot, error = None, None
    pauses = cycle(scenario.pauses)
    try:
        async with operator:
            while len(outputs) < most:
                try:
                    outputs.append(await operator.output.receive())
                except trio.EndOfChannel:
                    break
                check_limits(scenario, operator, options)
                if len(outputs) < most:
                    await trio.sleep(next(pauses))
            snapshot = operator.snapshot()
    except (FailureOf, ElementTimeoutError) as raised:
        error = raised
    assert trio.lowlevel.current_statistics().tasks_living == living
    assert recorder.running == 0
    assert recorder.peak_running <= options.get("capacity", scenario.capacity)
    return Run(outputs, snapshot or operator.snapshot(), operator.statistics(), recorder, error)


def check_limits(scenario: Scenario, operator: AsyncWaitOperator[Any, Any], options: dict[str, Any]) -> None:
    capacity, buffer = options.get("capacity", scenario.capacity), options.get("buffer", scenario.buffer)
    statistics = operator.statistics()
    assert statistics.running <= statistics.peak_running <= capacity
    assert statistics.buffered <= statistics.peak_buffered <= buffer
    if "restore" not in options:
        kinds = Counter(isinstance(each.element, Watermark) for each in operator.snapshot().elements)
        assert kinds[True] <= buffer + 1
        assert kinds[False] <= buffer + 1
        assert kinds.total() <= 2 * buffer + 1


def on_virtual_time(body: Callable[[], Awaitable[Any]]) -> Any:
    async def in_time() -> Any:
        with trio.move_on_after(1e9):  # nothing else could end what hangs
            return await body()
        raise AssertionError("it hangs")

    return trio.run(in_time, clock=MockClock(autojump_threshold=0))


# The properties.


def fails(scenario: Scenario) -> set[int]:
    numbers = range(len(scenario.elements))
    return {number for number in numbers if scenario.elements[number] and foretold(scenario, number) is None}


@given(scenarios())
def test_the_outputs_are_those_that_the_model_foretells(scenario: Scenario) -> None:
    async def body() -> None:
        done = await run(scenario)
        failing = fails(scenario)
        assert (done.error is not None) == bool(failing)
        if not failing:
            assert as_promised(scenario.mode, done.outputs) == as_promised(scenario.mode, foretold_outputs(scenario))
            assert len(done.snapshot) == 0
        if isinstance(done.error, FailureOf):
            assert done.error.args[0] in failing

    on_virtual_time(body)


@given(scenarios(), st.just(100) | st.integers(0, 12))
def test_the_numbers_add_up(scenario: Scenario, most: int) -> None:
    """At the end, after a failure, and after leaving early."""

    async def body() -> None:
        done = await run(scenario, most=most)
        numbers = done.statistics
        ended = numbers.completed + numbers.failed + numbers.timed_out + numbers.cancelled
        assert ended + numbers.retried == len(done.recorder.calls)
        assert ended == len(set(done.recorder.values))
        assert numbers.emitted == sum(not isinstance(output, Watermark) for output in done.outputs)
        assert numbers.running == 0
        assert numbers.skipped <= numbers.failed + numbers.timed_out
        assert min(numbers.slot_wait_seconds, numbers.head_wait_seconds) >= 0
        if done.error is None and len(done.outputs) < most:
            assert (numbers.buffered, numbers.cancelled) == (0, 0)
            assert ended == sum(element is not None for element in scenario.elements)

    on_virtual_time(body)


@given(scenarios(), st.integers(1, 4), st.integers(0, 6))
def test_a_run_that_was_left_after_k_outputs_goes_on_from_its_snapshot(
    scenario: Scenario, capacity: int, more: int
) -> None:
    """For every k, pickled, into other and perhaps smaller limits."""
    if fails(scenario):
        scenario = replace(scenario, on_error="skip")
    expected = as_promised(scenario.mode, foretold_outputs(scenario))

    async def body(k: int) -> int:
        source = Source(scenario)
        first = await run(scenario, source, most=k)
        restored = pickle.loads(pickle.dumps(first.snapshot))
        rest = await run(scenario, source, restore=restored, capacity=capacity, buffer=capacity + more)
        assert as_promised(scenario.mode, first.outputs + rest.outputs) == expected
        return len(first.outputs)

    k = 0
    while on_virtual_time(lambda: body(k)) == k:  # noqa: B023 - called at once
        k += 1


@given(scenarios(on_error="raise", has_on_timeout=False))
def test_a_run_that_failed_goes_on_from_its_snapshot_once_the_function_is_repaired(scenario: Scenario) -> None:
    async def body() -> None:
        source = Source(scenario)
        failed = await run(scenario, source)
        good = Scripted(
            {
                number: Step(0.0, result_of(scenario, number, element.rows))
                for number, element in enumerate(scenario.elements)
                if element is not None
            }
        )
        rest = await run(scenario, source, good, restore=pickle.loads(pickle.dumps(failed.snapshot)))
        assert rest.error is None
        expected = foretold_outputs(scenario, lambda scenario, number: rows_of(scenario, number, rows(number)))
        assert as_promised(scenario.mode, failed.outputs + rest.outputs) == as_promised(scenario.mode, expected)

    def rows(number: int) -> int:
        return scenario.elements[number].rows

    on_virtual_time(body)


@given(scenarios(), QUARTERS)
def test_a_run_that_was_cancelled_goes_on_from_its_snapshot(scenario: Scenario, instant: float) -> None:
    if fails(scenario):
        scenario = replace(scenario, on_error="skip")

    async def body() -> None:
        source = Source(scenario)
        recorder = Recorder(function_of(scenario))
        operator = operator_of(scenario, source, recorder)
        received = []
        with trio.move_on_after(instant):
            async with operator:
                async for output in operator.output:
                    received.append(output)  # noqa: PERF401 - what was received before counts
        assert recorder.running == operator.statistics().running == 0
        rest = await run(scenario, source, restore=operator.snapshot())
        expected = foretold_outputs(scenario)
        assert as_promised(scenario.mode, received + rest.outputs) == as_promised(scenario.mode, expected)

    on_virtual_time(body)


@given(scenarios(gaps=(), pauses=(0.0,), timeout=math.inf, retry=None, on_error="skip", buffer=100))
def test_every_slot_is_taken_again_as_soon_as_it_is_free(scenario: Scenario) -> None:
    """The instants at which invocations start and end are those of a greedy schedule."""
    latencies = [element.attempts[0][0] for element in scenario.elements if element is not None]
    free = [0.0] * scenario.capacity
    heapify(free)
    foretold_calls = []
    for latency in latencies:
        foretold_calls.append((free[0], free[0] + latency))
        heapreplace(free, free[0] + latency)

    async def body() -> None:
        mode = "ordered" if scenario.mode == "keyed" else scenario.mode
        done = await run(replace(scenario, mode=mode))
        assert [(call.started, call.ended) for call in done.recorder.calls] == foretold_calls

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


@pytest.mark.soak
@settings(max_examples=10_000)
@given(scenarios(), st.integers(1, 4), st.integers(0, 6), QUARTERS)
def test_all_of_it_for_minutes(scenario: Scenario, capacity: int, more: int, instant: float) -> None:
    test_the_outputs_are_those_that_the_model_foretells.hypothesis.inner_test(scenario)
    test_the_numbers_add_up.hypothesis.inner_test(scenario, int(4 * instant))
    test_a_run_that_was_left_after_k_outputs_goes_on_from_its_snapshot.hypothesis.inner_test(scenario, capacity, more)
    test_a_run_that_was_cancelled_goes_on_from_its_snapshot.hypothesis.inner_test(scenario, instant)
    failing = replace(scenario, on_error="raise", has_on_timeout=False)
    test_a_run_that_failed_goes_on_from_its_snapshot_once_the_function_is_repaired.hypothesis.inner_test(failing)
    test_two_records_of_one_key_never_run_at_once.hypothesis.inner_test(replace(scenario, mode="keyed"))
