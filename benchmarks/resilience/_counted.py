"""Experiments with limits that services count in different ways, and with a very low limit."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf

from trio_asyncio_io.gates import AdaptiveRate

from ._counting import between
from ._experiment import Criterion, Experiment, Result
from ._gates import BACKOFF, Gates, each, none
from ._run import simulate
from ._services import FixedWindowService, LimitedService, RateCappedService, SlidingWindowService

__all__ = ["EXPERIMENTS", "measure"]

SHARE, REFUSED = "of the rate", "refused per record"
PERCENT, RATIO = "{:.1%}", "{:.3f}"


def measure(
    service: LimitedService,
    tasks: int,
    possible: float,
    seconds: float,
    *,
    gates: Gates | None = None,
    warm_up: float = 10.0,
    capacity: int = 100,
    seed: int = 1,
) -> tuple[float, float]:
    """The share of the rate after the warm-up, and the refused calls per record, by default of ours."""
    simulate(seconds, service, (gates or each(AdaptiveRate))(tasks), capacity=capacity, seed=seed)
    admitted = between(service.admitted, warm_up, inf)
    return admitted / (possible * (seconds - warm_up)), between(service.refused, warm_up, inf) / max(1, admitted)


def _contenders(run: Callable[..., Result]) -> dict[str, partial[Result]]:
    return {"AdaptiveRate": partial(run, each(AdaptiveRate)), BACKOFF: partial(run, none)}


def _counted(gates: Gates, quick: bool) -> Result:
    values: dict[str, float | None] = {}
    for tasks in (1, 4, 16):
        services = (
            RateCappedService(100, retry_after=1.0),
            FixedWindowService(100, retry_after=1.0),
            SlidingWindowService(100, retry_after=1.0),
        )
        found = [measure(each, tasks, 100, 20 if quick else 60, gates=gates) for each in services]
        suffix = f"{tasks} task{'s' * (tasks > 1)}"
        values[f"{SHARE}, {suffix}"] = min(share for share, _ in found)
        values[f"refused, {suffix}"] = max(refused for _, refused in found)
    return Result(values, [])


def _low(gates: Gates, quick: bool) -> Result:
    seconds = 120.0 if quick else 300.0
    values: dict[str, float | None] = {}
    for tasks, suffix in ((1, "1 task"), (4, "4 tasks")):
        service = RateCappedService(1.0, burst=1.0)
        share, refused = measure(service, tasks, 1.0, seconds, gates=gates, warm_up=30.0)
        values |= {f"{SHARE}, {suffix}": share, f"refused, {suffix}": refused}
    return Result(values, [])


EXPERIMENTS = [
    Experiment(
        "counted",
        "A limit that is counted in three ways",
        "1, 4 and 16 tasks with 100 slots each, for 60 s. A service admits 100 calls per second, and answers the "
        "others with 429 and `Retry-After: 1`. It counts in a token bucket of 10, in seconds of its clock, or in any "
        "second. The numbers are those of the worst of the three, after 10 s",
        "Services round `Retry-After` up to whole seconds, so a second may mean a millisecond. A gate that held "
        "back all calls for it would lose a fifth of the rate.",
        "",
        {
            f"{kind}, {tasks}": form
            for tasks in ("1 task", "4 tasks", "16 tasks")
            for kind, form in ((SHARE, PERCENT), ("refused", RATIO))
        },
        [
            *(Criterion(f"{SHARE}, {tasks}", minimum=0.9) for tasks in ("1 task", "4 tasks", "16 tasks")),
            Criterion("refused, 1 task", maximum=0.01),
            Criterion("refused, 4 tasks", maximum=0.03),
            Criterion("refused, 16 tasks", maximum=0.082),
        ],
        _contenders(_counted),
    ),
    Experiment(
        "low",
        "One call per second",
        "1 and 4 tasks, for 300 s, in front of a token bucket of 1 that is filled once per second",
        "Each refusal is a good part of all calls. Several tasks cannot avoid each other's calls without knowing of "
        "each other: here a fixed share or a cluster's rate is right.",
        "",
        {
            f"{kind}, {tasks}": form
            for tasks in ("1 task", "4 tasks")
            for kind, form in ((SHARE, PERCENT), ("refused", RATIO))
        },
        [
            Criterion(f"{SHARE}, 1 task", minimum=0.85),
            Criterion("refused, 1 task", maximum=0.3),
            Criterion("refused, 4 tasks", maximum=1.2),
        ],
        _contenders(_low),
    ),
]
