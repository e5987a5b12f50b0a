"""Runs tasks against a simulated service, on a virtual clock."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from random import uniform
from typing import Any

import trio
from trio._core import _run as trio_run
from trio.testing import MockClock

from trio_asyncio_io import ExponentialBackoff, unordered_wait
from trio_asyncio_io.gates import Gate

from ._services import StatusError

Function = Callable[[Any], Awaitable[Any]]
GatesOfTask = Gate | Sequence[Gate] | None
Gates = Callable[[int], Sequence[GatesOfTask]]  # the number of tasks -> the gates of each task

BACKOFF = "backoff only"  # the contender without a gate


def each(make: Callable[[], GatesOfTask]) -> Gates:
    """A separate gate, or several, for each task."""
    return lambda tasks: [make() for _ in range(tasks)]


def none(tasks: int) -> list[GatesOfTask]:
    """No gates."""
    return [None] * tasks


@dataclass(frozen=True)
class ReproducibleBackoff(ExponentialBackoff):
    """A backoff with the random numbers of `reproducible`, because the operator's own differ in every run."""

    def backoff(self, attempt: int, random: float) -> float:
        """The delay after attempt number `attempt`, in seconds."""
        return super().backoff(attempt, uniform(0.0, 1.0))


# Retries never end, so that each record is answered and only the pace of the calls differs
RETRY = ReproducibleBackoff(100_000, 0.1, 10.0, retry_on=(StatusError, ConnectionError))


@contextmanager
def reproducible(seed: int = 1) -> Iterator[None]:
    """Equal random numbers, and an equal order of Trio's tasks, in each run of the block.

    Trio has no public option for this. Hypothesis and pytest-trio set the same names.
    """
    before = vars(trio_run)["_ALLOW_DETERMINISTIC_SCHEDULING"]
    vars(trio_run)["_ALLOW_DETERMINISTIC_SCHEDULING"] = True
    random.seed(seed)
    trio_run._r.seed(seed)
    try:
        yield
    finally:
        vars(trio_run)["_ALLOW_DETERMINISTIC_SCHEDULING"] = before


def simulate(
    seconds: float,
    service: Function,
    gates: Sequence[GatesOfTask],
    *,
    capacity: int = 100,
    control: Callable[[], Awaitable[None]] | None = None,
    rows: Sequence[int] | None = None,
    seed: int = 1,
) -> float:
    """Run a task for each of `gates`, for so many virtual seconds or until all records are answered, and return these.

    Args:
        seconds: The length of the run.
        service: Answers all calls.
        gates: Those of each task; None: no gate.
        capacity: That of each task.
        control: Runs beside the tasks, for example to change the service.
        rows: The number of records of each task. None: endless.
        seed: Of the random numbers.
    """
    sources = [count() for _ in gates] if rows is None else [range(number) for number in rows]
    tasks = [(source, service, gate, capacity) for source, gate in zip(sources, gates, strict=True)]
    with reproducible(seed):
        return trio.run(_run, seconds, tasks, control, clock=MockClock(autojump_threshold=0))


async def _run(seconds: float, tasks: list[Any], control: Callable[[], Awaitable[None]] | None) -> float:
    began = trio.current_time()
    with trio.move_on_after(seconds):
        async with trio.open_nursery() as beside:
            if control is not None:
                beside.start_soon(control)
            async with trio.open_nursery() as nursery:
                for task in tasks:
                    nursery.start_soon(_run_task, *task)
            beside.cancel_scope.cancel()
    return trio.current_time() - began


async def _run_task(source: Any, function: Function, gate: GatesOfTask, capacity: int) -> None:
    # The default buffer would be filled first, which takes most of the time of a short run
    options: Any = {"capacity": capacity, "buffer": 2 * capacity, "timeout": 1e6, "retry": RETRY, "gate": gate}
    async with unordered_wait(source, function, **options) as results:
        async for _ in results:
            pass
