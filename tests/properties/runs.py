"""Runs the operator on a scenario, and checks its limits."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import cycle
from typing import Any, TypeAlias

import trio
from trio.testing import MockClock

from tests.observing import StepRecorder
from tests.properties.scenarios import KEYS, FailureOf, Scenario
from trio_asyncio_io import (
    AsyncWaitOperator,
    AttemptTimeoutError,
    DeadLetter,
    ElementTimeoutError,
    Snapshot,
    Statistics,
    StreamRecord,
    Watermark,
)
from trio_asyncio_io.testing import Recorder, Scripted, Step

Function: TypeAlias = Callable[..., Awaitable[Any]]


@dataclass(frozen=True, order=True)
class DeadLetterOf:
    """Represents the dead letter of the element with this number."""

    number: int


def value_of(output: Any) -> Any:
    return output.value if isinstance(output, StreamRecord) else output


class Source:
    """The elements of a scenario, with gaps. Another run can continue to read it."""

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


def function_of_groups(scenario: Scenario) -> Callable[[list[int]], Awaitable[list[Any]]]:
    """The same function of lists. Each element has its own result or failure; a call has the longest latency."""
    attempts: Counter[int] = Counter()

    async def many(numbers: list[int]) -> list[Any]:
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

    return many


def handler_of(scenario: Scenario, what: str) -> Callable[..., Awaitable[Any]]:
    async def handler(number: int, error: Exception | None = None) -> Any:
        await trio.sleep(scenario.handler_latency)
        return result_of(scenario, number, 1, what)

    return handler


def options_of(scenario: Scenario) -> dict[str, Any]:
    """The options that the operator and the heart have in common."""
    return {
        "mode": scenario.mode,
        "key": (lambda number: number % KEYS) if scenario.mode == "keyed" else None,
        "capacity": scenario.capacity,
        "buffer": scenario.buffer,
        "timeout": scenario.timeout,
        "retry": scenario.retry,
        "on_error": handler_of(scenario, "handled") if scenario.on_error == "handle" else scenario.on_error,
        "on_timeout": handler_of(scenario, "late") if scenario.has_on_timeout else None,
        "flatten": scenario.flatten,
    }


def source_of(scenario: Scenario, source: Source) -> Any:
    """The source as an async iterable if it has gaps, and as an iterable if not."""
    return source if scenario.gaps else iter(source)


def operator_of(scenario: Scenario, source: Source, function: Any, **options: Any) -> AsyncWaitOperator[Any, Any]:
    return AsyncWaitOperator(function, source=source_of(scenario, source), **options_of(scenario) | options)


@dataclass
class Run:
    """The outputs of a run, its snapshot and statistics at the end, and its exception."""

    outputs: list[Any]
    dead_letters: list[DeadLetterOf]
    steps: list[tuple[Any, ...]]
    snapshot: Snapshot
    statistics: Statistics
    recorder: Recorder[Any, Any]
    error: Exception | None = None


async def run(
    scenario: Scenario,
    source: Source | None = None,
    function: Any = None,
    max_outputs: float = math.inf,
    **options: Any,
) -> Run:
    """Receive at most `max_outputs`, with pauses, and take the snapshot after the last one."""
    living = trio.lowlevel.current_statistics().tasks_living
    recorder = Recorder(function or function_of(scenario))
    observer = StepRecorder()
    operator = operator_of(scenario, source or Source(scenario), recorder, observer=observer, **options)
    outputs: list[Any] = []
    dead_letters: list[DeadLetterOf] = []
    snapshot, error = None, None
    pauses = cycle(scenario.pauses)
    try:
        async with operator:
            async with receiving_dead_letters(operator, dead_letters):
                while len(outputs) < max_outputs:
                    try:
                        outputs.append(await operator.output.receive())
                    except trio.EndOfChannel:
                        await all_dead_letters_received(operator)
                        break
                    check_limits(scenario, operator, options)
                    if len(outputs) < max_outputs:
                        await trio.sleep(next(pauses))
            snapshot = operator.snapshot()
    except (FailureOf, AttemptTimeoutError, ElementTimeoutError) as raised:
        error = raised
    assert trio.lowlevel.current_statistics().tasks_living == living
    assert recorder.running == 0
    assert recorder.peak_running <= options.get("capacity", scenario.capacity)
    snapshot = operator.snapshot() if snapshot is None else snapshot
    return Run(outputs, dead_letters, observer.steps, snapshot, operator.statistics(), recorder, error)


@asynccontextmanager
async def receiving_dead_letters(
    operator: AsyncWaitOperator[Any, Any], dead_letters: list[DeadLetterOf]
) -> AsyncIterator[None]:
    """Receive the dead letters while the block runs."""

    async def read() -> None:
        async for dead_letter in operator.output.dead_letters:
            dead_letters.append(number_of(dead_letter))  # noqa: PERF401 - used after a cancellation, too

    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            yield
            nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None


def number_of(dead_letter: DeadLetter) -> DeadLetterOf:
    return DeadLetterOf(value_of(dead_letter.element))


async def all_dead_letters_received(operator: AsyncWaitOperator[Any, Any]) -> None:
    """Wait until all dead letters have been received; the outputs have ended."""
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
        with trio.move_on_after(1e9):  # only this ends a run that hangs
            return await body()
        raise AssertionError("the run hangs")

    return trio.run(in_time, clock=MockClock(autojump_threshold=0))
