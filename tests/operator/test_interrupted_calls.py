"""Ctrl-C at each line of the package that runs in a call: the gates count each call to its end, and go on working."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.interrupting import LineCounter, LineOfSource, default_sigint
from tests.support import variation_except
from trio_asyncio_io import FixedDelay, unordered_wait
from trio_asyncio_io.gates import Budget, CircuitBreaker, Gate, Outcome, PerKey, RateLimit, settle
from trio_asyncio_io.policies import cached, gated, hedged, single_flight

# An interrupt between a call and its `await` drops the coroutine, as it does in any code
pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")

VALUES = [1, 2, 3, 1]


@pytest.fixture(autouse=True)
def _default_sigint() -> Iterator[None]:
    with default_sigint():
        yield
        gc.collect()  # a dropped coroutine warns here and not in the next test


class Counted(Gate):
    """Counts the calls that have started and have not ended, and admits four at once.

    Attributes:
        running: Those calls.
        estimated: The sum of what all calls have weighed at their start, without those that were not made.
    """

    def __init__(self) -> None:
        self.running = 0
        self.estimated = 0.0

    def delay(self, now: float, weight: float) -> float:
        return 0.0 if self.running < 4 else float("inf")

    def started(self, now: float, weight: float) -> None:
        self.running += 1
        self.estimated += weight

    def ended(self, now: float, seconds: float, outcome: Outcome, weight: float) -> None:
        self.running -= 1
        assert self.running >= 0
        if not outcome.was_made:
            self.estimated -= weight


class Savings:
    """A function that settles for less than its estimate, which is its value.

    Attributes:
        certain: The sum of what calls have saved.
        uncertain: What a call would have saved that was interrupted in `settle`.
    """

    def __init__(self) -> None:
        self.certain = self.uncertain = 0.0

    async def call(self, value: int) -> int:
        await trio.sleep(value)
        saved = value - 0.5
        try:
            settle(0.5)
        except KeyboardInterrupt:
            self.uncertain += saved
            raise
        self.certain += saved
        return value


@dataclass
class Job:
    """An operator that is run several times with the same function and the same gates."""

    function: Any
    options: dict[str, Any] = field(default_factory=dict)
    counted: Counted = field(default_factory=Counted)
    budget: Budget = field(default_factory=lambda: Budget(1_000_000.0))
    savings: Savings = field(default_factory=Savings)

    async def run(self, lines: LineCounter | None) -> list[Any]:
        with nullcontext() if lines is None else lines.traced():
            async with unordered_wait(VALUES, self.function, timeout=60.0, capacity=3, **self.options) as results:
                return [result async for result in results]


async def slow(value: Any) -> Any:
    await trio.sleep(value)
    return value


async def slow_first(value: int, seen: set[int]) -> int:
    """The first call for a value takes a minute, the second one no time."""
    if value not in seen:
        seen.add(value)
        await trio.sleep(50.0)
    return value


async def slow_group(values: list[int]) -> list[int]:
    await trio.sleep(1.0)
    return values


def plain() -> Job:
    return Job(slow)


def with_gates() -> Job:
    job = Job(slow)
    job.options["gate"] = [job.counted, job.budget, RateLimit(10.0), CircuitBreaker()]
    return job


def with_gates_per_key() -> Job:
    job = Job(slow)
    job.options["gate"] = [job.counted, job.budget, PerKey(RateLimit(1.0), key=lambda value: value)]
    return job


def retried() -> Job:
    failed: set[int] = set()

    async def fail_first(value: int) -> int:
        await trio.sleep(1.0)
        if value not in failed:
            failed.add(value)
            raise OSError
        return value

    job = Job(fail_first)
    job.options = {"gate": [job.counted, job.budget], "retry": FixedDelay(2, 1.0, attempt_timeout=10.0)}
    return job


def budgeted() -> Job:
    job = Job(None)
    job.function = job.savings.call
    job.budget = Budget(1_000_000.0, weight=float)
    job.counted.weight = float
    job.options["gate"] = [job.counted, job.budget]
    return job


def gated_inside() -> Job:
    job = Job(None)
    job.function = gated(slow, [job.counted, job.budget, RateLimit(1.0)])
    return job


def gated_inside_per_key() -> Job:
    job = Job(None)
    job.function = gated(slow, [job.counted, job.budget, PerKey(RateLimit(1.0), key=lambda value: value)])
    return job


def hedged_in_gates() -> Job:
    seen: set[int] = set()
    job = Job(hedged(lambda value: slow_first(value, seen), after=1.0, budget=1.0))
    job.options["gate"] = [job.counted, job.budget]
    return job


def hedged_around_gated() -> Job:
    seen: set[int] = set()
    job = Job(None)
    job.function = hedged(
        gated(lambda value: slow_first(value, seen), [job.counted, job.budget]), after=1.0, budget=1.0
    )
    return job


def cached_and_shared() -> Job:
    job = Job(None)
    job.function = cached(single_flight(gated(slow, [job.counted, job.budget])), size=1, ttl=60.0)
    return job


def grouped() -> Job:
    job = Job(slow_group)
    job.options = {"gate": [job.counted, job.budget], "group": 2, "group_wait": 0.5}
    return job


# Those in which most is counted come first
WITH_OWN_LINES = [
    budgeted,
    hedged_in_gates,
    retried,
    with_gates_per_key,
    cached_and_shared,
    grouped,
    with_gates,
    gated_inside,
]
JOBS = [*WITH_OWN_LINES, hedged_around_gated, gated_inside_per_key, plain]


def run(job: Job, lines: LineCounter | None = None) -> list[Any] | None:
    """The results, or None if the run was interrupted."""
    results = None
    try:
        results = sorted(trio.run(job.run, lines, clock=MockClock(autojump_threshold=0)))
    except* KeyboardInterrupt:
        pass
    return results


def check(job: Job, lines: LineCounter, where: object) -> None:
    """Interrupt the job, and run it again. Each call has ended, and has cost what it settled, or its estimate."""
    run(job, lines)
    check_account(job, where)
    assert run(job) == sorted(VALUES), where
    check_account(job, where)


def check_account(job: Job, where: object) -> None:
    assert job.counted.running == 0, where
    assert job.budget.reserved == 0, where
    spent = job.counted.estimated - job.savings.certain
    assert job.budget.spent in {spent, spent - job.savings.uncertain}, where


def lines_of(make: Callable[[], Job]) -> Counter[tuple[str, int]]:
    """The lines that a job executes, and how often."""
    whole = LineCounter()
    assert run(make(), whole) == sorted(VALUES)
    return whole.counts


@pytest.mark.slow
@pytest.mark.parametrize("make", variation_except(WITH_OWN_LINES[:1], WITH_OWN_LINES), ids=lambda make: make.__name__)
def test_after_an_interrupt_at_any_line_each_call_has_ended_once_and_the_gates_work(make: Callable[[], Job]) -> None:
    """Each line is interrupted in the first job that executes it."""
    earlier = {line for each in JOBS[: JOBS.index(make)] for line in lines_of(each)}
    new = {line: count for line, count in lines_of(make).items() if line not in earlier}
    assert new
    for line, count in new.items():
        check(make(), LineOfSource(line, (count + 1) // 2), line)


@pytest.mark.thorough
@pytest.mark.parametrize("make", JOBS, ids=lambda make: make.__name__)
def test_after_an_interrupt_at_any_moment_each_call_has_ended_once_and_the_gates_work(make: Callable[[], Job]) -> None:
    whole = LineCounter()
    assert run(make(), whole) == sorted(VALUES)
    for number in range(1, whole.count + 1):
        check(make(), LineCounter(number), number)
