"""The scenarios: what a run of the operator may depend on, the model of ten lines that foretells it, and a run.

Latencies are multiples of a quarter of a second, and deadlines lie between them: on the mock clock all instants are
exact, and nothing ever happens at the very deadline.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import cycle
from types import SimpleNamespace
from typing import Any

import trio
from hypothesis import strategies as st
from trio.testing import MockClock

from trio_asyncio_io import (
    AsyncWaitOperator,
    AttemptTimeoutError,
    DeadLetter,
    DelayList,
    ElementTimeoutError,
    FixedDelay,
    Observer,
    RetryStrategy,
    Snapshot,
    Statistics,
    StreamRecord,
    Watermark,
)
from trio_asyncio_io.policies import grouped
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
    retry: RetryStrategy | None
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


ATTEMPT_TIMEOUTS = st.sampled_from([math.inf, math.inf, 1 / 64, 1 + 1 / 64])
RETRIES = st.builds(FixedDelay, st.integers(0, 2), FEW_QUARTERS, attempt_timeout=ATTEMPT_TIMEOUTS) | st.builds(
    DelayList, st.lists(FEW_QUARTERS, max_size=3), attempt_timeout=ATTEMPT_TIMEOUTS
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
        "retry": draw(st.none() | RETRIES),
        "on_error": draw(st.sampled_from(["raise", "skip", "handle", "dead_letter"])),
        "has_on_timeout": draw(st.booleans()),
        "handler_latency": draw(FEW_QUARTERS),
        "flatten": draw(st.booleans()),
        "gaps": tuple(draw(st.lists(FEW_QUARTERS, max_size=3))),
        "pauses": tuple(draw(st.lists(FEW_QUARTERS, min_size=1, max_size=3))),
    }
    return Scenario(**{**drawn, **fixed})


def without_attempt_timeout(scenario: Scenario) -> Scenario:
    retry = scenario.retry and replace(scenario.retry, attempt_timeout=math.inf)
    return replace(scenario, retry=retry)


# The model.


def foretold(scenario: Scenario, number: int) -> list[Any] | None:
    """The outputs of one record, None if it fails."""
    element, retry = scenario.elements[number], scenario.retry or FixedDelay(0, 0.0)
    elapsed, is_good, is_late = 0.0, False, False
    for attempt in range(retry.max_retries + 1):
        latency, is_good = element.attempts[min(attempt, len(element.attempts) - 1)]
        is_good = is_good and latency < retry.attempt_timeout
        elapsed += min(latency, retry.attempt_timeout) + (retry.backoff(attempt, 0.0) if attempt else 0.0)
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
    if scenario.on_error == "dead_letter":
        return [DeadLetterOf(number)]
    return [] if scenario.on_error == "skip" else None


@dataclass(frozen=True, order=True)
class DeadLetterOf:
    """Stands for the dead letter of the element with this number."""

    number: int


def rows_of(scenario: Scenario, number: int, rows: int, what: str = "row") -> list[Any]:
    values = [(number, what, row) for row in range(rows)] if scenario.flatten else [(number, what)]
    return values if scenario.elements[number].is_bare else [StreamRecord(value, number) for value in values]


def foretold_outputs(scenario: Scenario, of: Callable[[Scenario, int], list[Any] | None] = foretold) -> list[Any]:
    """All outputs in the order of the source; a failure has none."""
    out: list[Any] = []
    for number, element in enumerate(scenario.elements):
        out.extend([Watermark(number)] if element is None else of(scenario, number) or [])
    return [each for each in out if not isinstance(each, DeadLetterOf)]


def foretold_letters(scenario: Scenario) -> list[DeadLetterOf]:
    """The dead letters, in the order of the source."""
    records = (number for number, element in enumerate(scenario.elements) if element is not None)
    return [each for number in records for each in foretold(scenario, number) or [] if isinstance(each, DeadLetterOf)]


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


def grouped_function_of(scenario: Scenario, size: int, age: float, calls: list[list[int]]) -> grouped[Any]:
    """The same function in groups: each element has its own result or failure, each call the latency of its slowest."""
    attempts: Counter[int] = Counter()

    async def many(numbers: list[int]) -> list[Any]:
        calls.append(numbers)
        steps = []
        for number in numbers:
            of_element = scenario.elements[number].attempts
            steps.append(of_element[min(attempts[number], len(of_element) - 1)])
            attempts[number] += 1
        await trio.sleep(max(latency for latency, _ in steps))
        return [
            result_of(scenario, number, scenario.elements[number].rows) if is_good else FailureOf(number)
            for number, (_, is_good) in zip(numbers, steps, strict=True)
        ]

    return grouped(many, size=size, age=age)


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
    letters: list[DeadLetterOf]
    tally: Tally
    snapshot: Snapshot
    statistics: Statistics
    recorder: Recorder[Any, Any]
    error: Exception | None = None


class Tally(Observer):
    """Counts how often each hook was called."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def __getattribute__(self, name: str) -> Any:
        if name not in vars(Observer) or name.startswith("_"):
            return super().__getattribute__(name)
        return lambda *told: self.counts.update([name])


async def run(
    scenario: Scenario, source: Source | None = None, function: Any = None, most: float = math.inf, **options: Any
) -> Run:
    """Receive at most so many outputs, with pauses in between, and take the snapshot after the last one."""
    living = trio.lowlevel.current_statistics().tasks_living
    recorder = Recorder(function or function_of(scenario))
    tally = Tally()
    flush = getattr(function, "flush", None)
    asked: Any = recorder if flush is None else SimpleNamespace(invoke=recorder, flush=flush)
    operator = operator_of(scenario, source or Source(scenario), asked, observer=tally, **options)
    outputs: list[Any] = []
    letters: list[DeadLetterOf] = []
    snapshot, error = None, None
    pauses = cycle(scenario.pauses)
    try:
        async with operator:
            async with reading(operator, letters):
                while len(outputs) < most:
                    try:
                        outputs.append(await operator.output.receive())
                    except trio.EndOfChannel:
                        await until_the_last_letter(operator)
                        break
                    check_limits(scenario, operator, options)
                    if len(outputs) < most:
                        await trio.sleep(next(pauses))
            snapshot = operator.snapshot()
    except (FailureOf, AttemptTimeoutError, ElementTimeoutError) as raised:
        error = raised
    assert trio.lowlevel.current_statistics().tasks_living == living
    assert recorder.running == 0
    assert recorder.peak_running <= options.get("capacity", scenario.capacity)
    snapshot = operator.snapshot() if snapshot is None else snapshot
    return Run(outputs, letters, tally, snapshot, operator.statistics(), recorder, error)


@asynccontextmanager
async def reading(operator: AsyncWaitOperator[Any, Any], letters: list[DeadLetterOf]) -> AsyncIterator[None]:
    """Receive the dead letters while the block runs."""

    async def read() -> None:
        async for letter in operator.output.dead_letters:
            letters.append(number_of(letter))  # noqa: PERF401 - those that were received before it ends count

    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            yield
            nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None


def number_of(letter: DeadLetter) -> DeadLetterOf:
    return DeadLetterOf(value_of(letter.element))


async def until_the_last_letter(operator: AsyncWaitOperator[Any, Any]) -> None:
    """The outputs are at their end, and so are the letters, once they have been received."""
    while operator.statistics().buffered:
        await trio.lowlevel.checkpoint()


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
