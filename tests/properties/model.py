"""A model that predicts the outputs of a scenario."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.properties.scenarios import KEYS, Scenario
from trio_asyncio_io import (
    FixedDelay,
    StreamRecord,
    Watermark,
)


def predicted(scenario: Scenario, number: int) -> list[Any] | None:
    """The outputs of one record; None if it fails."""
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
    """Represents the dead letter of the element with this number."""

    number: int


def rows_of(scenario: Scenario, number: int, rows: int, what: str = "row") -> list[Any]:
    values = [(number, what, row) for row in range(rows)] if scenario.flatten else [(number, what)]
    return values if scenario.elements[number].is_bare else [StreamRecord(value, number) for value in values]


def predicted_outputs(scenario: Scenario, of: Callable[[Scenario, int], list[Any] | None] = predicted) -> list[Any]:
    """All outputs in input order; a failed record has none."""
    out: list[Any] = []
    for number, element in enumerate(scenario.elements):
        out.extend([Watermark(number)] if element is None else of(scenario, number) or [])
    return [each for each in out if not isinstance(each, DeadLetterOf)]


def predicted_dead_letters(scenario: Scenario) -> list[DeadLetterOf]:
    """The dead letters in input order."""
    records = (number for number, element in enumerate(scenario.elements) if element is not None)
    return [each for number in records for each in predicted(scenario, number) or [] if isinstance(each, DeadLetterOf)]


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


def value_of(output: Any) -> Any:
    return output.value if isinstance(output, StreamRecord) else output
