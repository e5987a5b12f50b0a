"""Experiments with a rate that many tasks share."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import inf

from trio_asyncio_io.gates import Auto, RateLimit

from ._counting import between
from ._experiment import Criterion, Experiment, Result
from ._leases import SimulatedSource, leases
from ._run import BACKOFF, Gates, GatesOfTask, each, none, simulate
from ._services import RateCappedService

OURS = 'capacity="auto"'
LEASE = "cluster_rate, a lease"
SHARE = "cluster_rate, a fixed share"
REFUSED = "refused per record"
LATE = "refused per record after 10 s"
PERFECT = "of perfect"
PERCENT, RATIO = "{:.1%}", "{:.3f}"

RATE = 500
LONG, SHORT, QUICK = 180.0, 60.0, 12.0  # seconds
SLOTS = 100
AUTO = each(lambda: Auto(most=SLOTS))
EACH_A_SHARE = each(lambda: RateLimit(RATE / 16))


def _leased(tasks: int) -> Sequence[GatesOfTask]:
    return leases(SimulatedSource(), RATE, tasks)


def _many(gates: Gates, seconds: float, tasks: int, quick: bool) -> Result:
    seconds = QUICK if quick else seconds
    service = RateCappedService(RATE)
    simulate(seconds, service, gates(tasks), capacity=SLOTS)
    values = {
        "goodput": len(service.admitted) / (RATE * seconds),
        REFUSED: len(service.refused) / len(service.admitted),
        LATE: between(service.refused, 10, inf) / between(service.admitted, 10, inf),
    }
    return Result(values)


def _of(tasks: int, name: str) -> str:
    return f"{tasks} tasks, {name}"


def _skew(gates: Gates, quick: bool) -> Result:
    seconds = 6 if quick else 60
    service = RateCappedService(RATE)
    rows = RATE * seconds
    shares = [3 * rows // 16] * 4 + [rows // 48] * 12
    took = simulate(10 * seconds, service, gates(16), capacity=SLOTS, rows=shares)
    return Result({PERFECT: seconds / took, REFUSED: len(service.refused) / len(service.admitted)})


EXPERIMENTS = [
    Experiment(
        name="many",
        title="Many tasks at one rate",
        setting=(
            "16 or 64 tasks with 100 slots each, for 180 s; a backoff or a fixed share for 60 s. The service admits "
            "500 calls a second of all tasks, with a burst of 50, and answers the others with 429"
        ),
        reading=(
            'A backoff alone sends each refused call again and again. With `capacity="auto"`, each task finds its part '
            "of the rate by its refusals alone. A share and a lease need none. Goodput is relative to the rate; with "
            "the burst, it may exceed 100 %."
        ),
        formats={"goodput": PERCENT, REFUSED: RATIO, LATE: RATIO},
        criteria=[
            *(Criterion("goodput", minimum=0.96, of=_of(tasks, OURS)) for tasks in (16, 64)),
            *(Criterion(REFUSED, maximum=0.05, of=_of(tasks, OURS)) for tasks in (16, 64)),
            Criterion(REFUSED, maximum=0.01, of=_of(64, LEASE)),
        ],
        contenders={
            _of(16, OURS): partial(_many, AUTO, LONG, 16),
            _of(16, BACKOFF): partial(_many, none, SHORT, 16),
            _of(16, SHARE): partial(_many, EACH_A_SHARE, SHORT, 16),
            _of(64, OURS): partial(_many, AUTO, LONG, 64),
            _of(64, BACKOFF): partial(_many, none, SHORT, 64),
            _of(64, LEASE): partial(_many, _leased, LONG, 64),
        },
    ),
    Experiment(
        name="skew",
        title="A few tasks have most of the rows",
        setting="16 tasks have 30,000 records, 4 of them three quarters of these. The service is the same",
        reading=(
            'A fixed share is wasted as soon as the small tasks have ended. With `capacity="auto"` or a lease, the '
            "others take it over."
        ),
        formats={PERFECT: PERCENT, REFUSED: RATIO},
        criteria=[Criterion(PERFECT, minimum=0.85), Criterion(PERFECT, minimum=0.95, of=LEASE)],
        contenders={
            OURS: partial(_skew, AUTO),
            BACKOFF: partial(_skew, none),
            SHARE: partial(_skew, EACH_A_SHARE),
            LEASE: partial(_skew, _leased),
        },
    ),
]
