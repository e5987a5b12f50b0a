"""Experiments with services that no parameter of a gate was chosen for: drawn at random, with their own seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import exp, log
from random import Random
from statistics import fmean

from ._experiment import Criterion, Experiment, Result
from ._rates import PERCENT, RATIO, contenders, measure
from ._run import Gates
from ._services import FixedWindowService, LimitedService, RateCappedService, SlidingWindowService

__all__ = ["EXPERIMENTS"]

SEED = 20_260_701  # drawn after all parameters were fixed
CASES = 24
MEAN, LEAST, REFUSED, MOST = "mean share", "least share", "mean refused", "most refused"


def _between(random: Random, low: float, high: float) -> float:
    return exp(random.uniform(log(low), log(high)))


def _limits(cases: int) -> Iterator[tuple[LimitedService, int, float, int]]:
    """A service, the number of tasks, the possible rate and the capacity."""
    random = Random(SEED)
    for _ in range(cases):
        tasks = random.choice([1, 1, 2, 3, 6, 10, 20])
        limit = round(_between(random, max(8.0, 4.0 * tasks), 300))
        latency = _between(random, 0.01, 3.0)
        hint, jitter = random.choice([None, 1.0]), random.choice([0.0, 0.2, 0.5])
        burst = max(4.0, limit * _between(random, 0.05, 1.0))
        services: list[Callable[[], LimitedService]] = [
            partial(RateCappedService, limit, latency, hint, burst=burst, jitter=jitter),
            partial(FixedWindowService, limit, phase=random.random(), latency=latency, retry_after=hint, jitter=jitter),
            partial(SlidingWindowService, limit, latency=latency, retry_after=hint, jitter=jitter),
        ]
        yield random.choice(services)(), tasks, float(limit), int(3 * limit * latency / tasks) + 30


def _rates(gates: Gates, quick: bool) -> Result:
    found = [
        measure(service, tasks, possible, 60.0, gates=gates, warm_up=15.0, capacity=capacity, seed=number)
        for number, (service, tasks, possible, capacity) in enumerate(_limits(3 if quick else CASES))
    ]
    shares, refused = zip(*found, strict=True)
    return Result({MEAN: fmean(shares), LEAST: min(shares), REFUSED: fmean(refused), MOST: max(refused)}, [])


EXPERIMENTS = [
    Experiment(
        "rates-held-out",
        "Limits that no parameter was chosen for",
        f"{CASES} services at random: token buckets of at least 4, fixed and sliding windows; 8 to 300 calls per "
        "second. Calls of 10 ms to 3 s, that vary by up to half; `Retry-After: 1` or none; 1 to 20 tasks. 60 s each, "
        "of which the first 15 do not count",
        "The parameters of the gates were chosen by other services, and then these were drawn.",
        "",
        {MEAN: PERCENT, LEAST: PERCENT, REFUSED: RATIO, MOST: RATIO},
        [Criterion(MEAN, minimum=0.93), Criterion(LEAST, minimum=0.85), Criterion(REFUSED, maximum=0.05)],
        contenders(_rates),
    ),
]
