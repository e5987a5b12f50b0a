"""Random scenarios of the operator.

Latencies are multiples of a quarter of a second, and deadlines lie between them. So all instants on the mock clock are
exact, and no event coincides with a deadline.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from hypothesis import strategies as st

from trio_asyncio_io import FixedDelay, RetryStrategy

KEYS = 3


class FailureOf(Exception):  # noqa: N818 - reads as a phrase
    """The exception of the element with this number."""


@dataclass(frozen=True)
class Element:
    """One record: latency and success of each attempt, and the number of rows of its result."""

    attempts: tuple[tuple[float, bool], ...]
    rows: int
    is_bare: bool


@dataclass(frozen=True)
class Scenario:
    """The inputs of one run. None among the elements is a watermark."""

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


@dataclass(frozen=True, repr=False)
class Delays(RetryStrategy):
    """A strategy of the user's own: a list of delays."""

    delays: tuple[float, ...]

    def backoff(self, attempt: int, random: float) -> float:
        return self.delays[attempt - 1]


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
    lambda delays, timeout: Delays(len(delays), tuple(delays), attempt_timeout=timeout),
    st.lists(FEW_QUARTERS, max_size=3),
    ATTEMPT_TIMEOUTS,
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


@st.composite
def crowded_scenarios(draw: st.DrawFn, **fixed: Any) -> Scenario:
    """Many records of which many fail, few slots, and retries that wait for each other."""
    random = Random(draw(st.integers(0, 1_000_000)))
    capacity = random.randint(1, 3)
    elements = tuple(
        Element(tuple((random.randint(0, 12) / 4, random.random() < 0.4) for _ in range(3)), 1, is_bare=True)
        for _ in range(30)
    )
    crowd = {
        "elements": elements,
        "capacity": capacity,
        "buffer": random.randint(capacity, 30),
        "timeout": random.choice([math.inf, 6.125]),
        "retry": FixedDelay(2, random.choice([0.0, 0.25, 1.0, 3.0])),
    }
    return draw(scenarios(**crowd, **fixed))


def without_attempt_timeout(scenario: Scenario) -> Scenario:
    retry = scenario.retry and replace(scenario.retry, attempt_timeout=math.inf)
    return replace(scenario, retry=retry)


def without_ties(scenario: Scenario) -> Scenario:
    """The same scenario with latencies and gaps that all differ, and without deadlines of attempts."""
    elements = tuple(
        element and replace(element, attempts=tuple(_distinct(number, element.attempts)))
        for number, element in enumerate(scenario.elements)
    )
    gaps = tuple(gap + _fraction(-1, place) for place, gap in enumerate(scenario.gaps))
    return without_attempt_timeout(replace(scenario, elements=elements, gaps=gaps))


def _distinct(number: int, attempts: tuple[tuple[float, bool], ...]) -> Iterator[tuple[float, bool]]:
    for place, (latency, is_good) in enumerate(attempts):
        yield latency + _fraction(number, place), is_good


def _fraction(number: int, place: int) -> float:
    """Less than 1/16 of a second, and exact on the mock clock. No two sums of a few of them are likely to be equal."""
    return Random(f"{number} {place}").randrange(1, 2**24) / 2**28
