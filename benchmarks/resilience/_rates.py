"""Experiments with many tasks that share the rate of a service, which answers 429 above it."""

from __future__ import annotations

from functools import partial
from math import inf

from trio_asyncio_io.gates import AdaptiveRate, RateLimit

from ._counting import between, per_second
from ._experiment import Criterion, Experiment, Result
from ._gates import BACKOFF, Gates, each, leased, none
from ._run import simulate
from ._services import RateCappedService

__all__ = ["EXPERIMENTS"]

OURS = "AdaptiveRate"
LEASE = "cluster_rate, a lease"
SHARE = "a fixed share"
REFUSED = "refused per record"
LATE = "refused per record after 10 s"
PERFECT = "of perfect"
RATE = 500
LONG, SHORT, QUICK = 180.0, 60.0, 12.0  # seconds


def _share(gates: Gates, seconds: float, quick: bool, tasks: int = 16) -> Result:
    seconds = QUICK if quick else seconds
    service = RateCappedService(RATE)
    simulate(seconds, service, gates(tasks))
    values = {
        "goodput": len(service.admitted) / (RATE * seconds),
        REFUSED: len(service.refused) / len(service.admitted),
        LATE: between(service.refused, 10, inf) / between(service.admitted, 10, inf),
    }
    return Result(values, per_second(service.refused, min(seconds, SHORT)))


def _skew(gates: Gates, quick: bool) -> Result:
    seconds = 6 if quick else 60
    service = RateCappedService(RATE)
    rows = RATE * seconds
    shares = [3 * rows // 16] * 4 + [rows // 48] * 12
    took = simulate(10 * seconds, service, gates(16), rows=shares)
    values = {PERFECT: seconds / took, REFUSED: len(service.refused) / len(service.admitted)}
    return Result(values, per_second(service.admitted, took))


PERCENT, RATIO = "{:.1%}", "{:.3f}"
OF_FEW = each(lambda: AdaptiveRate(growth=1.0))
EACH_A_SHARE = each(lambda: RateLimit(RATE / 16))

EXPERIMENTS = [
    Experiment(
        "rate",
        "16 tasks share a rate",
        "16 tasks with 100 slots each, for 180 s; the other algorithms for 60 s. The service admits 500 calls per "
        "second of all tasks, with a burst of 50, and answers the others with 429. The gate is "
        "`AdaptiveRate(growth=1.0)`, for few tasks",
        "Calls that were refused. A backoff alone sends each refused call again and again. With `AdaptiveRate`, each "
        "task finds its share, without knowing of the others. Goodput is relative to the rate; with the burst, it may "
        "exceed 100 %.",
        "refused calls per second",
        {"goodput": PERCENT, REFUSED: RATIO, LATE: RATIO},
        [Criterion("goodput", minimum=0.96), Criterion(REFUSED, maximum=0.05)],
        {
            OURS: partial(_share, OF_FEW, LONG),
            BACKOFF: partial(_share, none, SHORT),
            SHARE: partial(_share, EACH_A_SHARE, SHORT),
        },
        log=True,
    ),
    Experiment(
        "many",
        "64 tasks share a rate",
        "The same with 64 tasks, and `AdaptiveRate()`. A lease is for 180 s as well",
        "With many tasks, each has few calls to find its share with, and most refusals are at the start. A lease needs "
        "no refusals.",
        "",
        {"goodput": PERCENT, REFUSED: RATIO, LATE: RATIO},
        [Criterion(LATE, maximum=0.10), Criterion(REFUSED, maximum=0.15), Criterion(REFUSED, maximum=0.01, of=LEASE)],
        {
            OURS: partial(_share, each(AdaptiveRate), LONG, tasks=64),
            BACKOFF: partial(_share, none, SHORT, tasks=64),
            LEASE: partial(_share, leased(RATE), LONG, tasks=64),
        },
    ),
    Experiment(
        "skew",
        "A few tasks have most of the rows",
        "16 tasks have 30,000 records, 4 of them three quarters of these. The service admits 500 calls per second",
        "A fixed share is wasted as soon as the small tasks "
        "have ended. With `AdaptiveRate` or a lease, the others take it over.",
        "",
        {PERFECT: PERCENT, REFUSED: RATIO},
        [Criterion(PERFECT, minimum=0.88), Criterion(PERFECT, minimum=0.95, of=LEASE)],
        {
            OURS: partial(_skew, OF_FEW),
            BACKOFF: partial(_skew, none),
            SHARE: partial(_skew, EACH_A_SHARE),
            LEASE: partial(_skew, leased(RATE)),
        },
    ),
]
