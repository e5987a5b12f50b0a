"""What a scenario must do: a run of the heart, docs/examples/heart.py.

The heart has no dead letters, no groups, no gates and no timeout of an attempt. Here a handler makes the dead letters,
and a function around the function limits an attempt. A group changes instants, but no output, so the outputs of single
calls are those of groups. `test_gates` and its neighbours check gates without a heart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import cycle
from math import inf
from typing import Any

import trio
from pictures.runs import script

from tests.properties.runs import (
    DeadLetterOf,
    Function,
    Source,
    function_of,
    handler_of,
    on_virtual_time,
    operator_of,
    options_of,
    source_of,
    value_of,
)
from tests.properties.scenarios import KEYS, FailureOf, Scenario
from trio_asyncio_io import AttemptTimeoutError, ElementTimeoutError, Snapshot, Watermark
from trio_asyncio_io.testing import Recorder

Heart = script("heart").Heart


@dataclass
class Expected:
    """The outputs and dead letters of a scenario in the order of the heart, and the records that fail."""

    outputs: list[Any] = field(default_factory=list)
    dead_letters: list[DeadLetterOf] = field(default_factory=list)
    failing: set[int] = field(default_factory=set)


def expected(scenario: Scenario, function: Function | None = None) -> Expected:
    """Run the heart to the end of the input: a failure that would stop it is noted instead."""
    found = Expected()
    options = options_of(scenario) | {"on_error": _note_failures(scenario, found), "flatten": True}
    if scenario.has_on_timeout:
        options["on_timeout"] = _with_list(scenario, handler_of(scenario, "late"))
    call = _with_list(scenario, limited(scenario, function or function_of(scenario)))

    async def body() -> None:
        heart = Heart(source_of(scenario, Source(scenario)), call, **options)
        async with heart.running():
            async for output in heart:
                if isinstance(value_of(output), DeadLetterOf):
                    found.dead_letters.append(value_of(output))
                else:
                    found.outputs.append(output)

    on_virtual_time(body)
    return found


def _note_failures(scenario: Scenario, found: Expected) -> Function:
    """An `on_error` that never raises."""
    handler = _with_list(scenario, handler_of(scenario, "handled"))

    async def on_error(number: int, error: Exception) -> list[Any]:
        if scenario.on_error == "dead_letter":
            return [DeadLetterOf(number)]
        if scenario.on_error == "handle" and scenario.handler_latency < scenario.timeout:
            return await handler(number, error)
        if scenario.on_error != "skip":
            found.failing.add(number)
        return []

    return on_error


def _with_list(scenario: Scenario, function: Function) -> Function:
    """The function with a list of outputs as its result."""

    async def call(*arguments: Any) -> list[Any]:
        result = await function(*arguments)
        return list(result) if scenario.flatten else [result]

    return call


def limited(scenario: Scenario, function: Function) -> Function:
    """The function with the `attempt_timeout` of the scenario's retries."""
    seconds = inf if scenario.retry is None else scenario.retry.attempt_timeout
    if seconds == inf:
        return function

    async def call(number: int) -> Any:
        with trio.move_on_after(seconds):
            return await function(number)
        raise AttemptTimeoutError(f"no result for {number} in time", seconds)

    return call


def normalized(mode: str, outputs: list[Any]) -> Any:
    """Remove the differences in order that the mode allows, so that equivalent outputs are equal."""
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


@dataclass
class Seen:
    """What a run shows.

    In a scenario `without_ties` one kind of tie remains: records that start at one instant expire at one instant, and
    Trio runs the tasks of one instant in any order. So if there are deadlines, and the order of completion counts, the
    outputs are sorted. The instants are not.
    """

    instants: list[float]
    outputs: list[str]
    calls: list[tuple[Any, ...]]
    peak: int
    error: str


async def seen(scenario: Scenario, *, by_heart: bool) -> Seen:
    """Run the heart or the operator, and receive its outputs with the pauses of the scenario."""
    recorder = Recorder(function_of(scenario))
    instants, outputs = [], []
    pauses, start, error = cycle(scenario.pauses), trio.current_time(), ""
    try:
        async with running(scenario, Source(scenario), recorder, by_heart=by_heart) as results:
            async for output in results:
                instants.append(trio.current_time() - start)
                outputs.append(repr(output))
                await trio.sleep(next(pauses))
    except (FailureOf, ElementTimeoutError, trio.TooSlowError) as raised:
        error = "late" if isinstance(raised, ElementTimeoutError | trio.TooSlowError) else repr(raised)
    if scenario.mode != "ordered" and scenario.timeout < inf:
        outputs.sort()
    calls = [(call.value, call.started - start, (call.ended or inf) - start, call.cancelled) for call in recorder.calls]
    return Seen(instants, outputs, sorted(calls), recorder.peak_running, error)


@asynccontextmanager
async def running(
    scenario: Scenario, source: Source, function: Function, *, by_heart: bool, **options: Any
) -> AsyncIterator[Any]:
    """The outputs of the heart, or of the operator."""
    if by_heart:
        heart = Heart(source_of(scenario, source), function, **options_of(scenario) | options)
        async with heart.running():
            yield heart
    else:
        async with operator_of(scenario, source, function, **options) as operator:
            yield operator.output


async def received(
    scenario: Scenario, source: Source, most: float, *, by_heart: bool, **options: Any
) -> tuple[list[Any], Snapshot]:
    """At most this number of outputs, and the snapshot after the last one."""
    found: list[Any] = []
    function = limited(scenario, function_of(scenario)) if by_heart else function_of(scenario)
    async with running(scenario, source, function, by_heart=by_heart, **options) as results:
        while len(found) < most:
            try:
                found.append(await anext(results))
            except StopAsyncIteration:
                break
        return found, results.snapshot()
