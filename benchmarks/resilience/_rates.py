"""Experiments with a rate that a service allows: shared, counted in several ways, very low, or changing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import inf

import trio

from trio_asyncio_io.gates import AdaptiveRate, RateLimit

from ._counting import between, per_second
from ._experiment import Criterion, Experiment, Result
from ._leases import SimulatedSource, leases
from ._run import BACKOFF, Gates, GatesOfTask, each, none, simulate
from ._services import FixedWindowService, LimitedService, RateCappedService, SlidingWindowService, StatusError

__all__ = ["EXPERIMENTS", "contenders", "measure"]

OURS = "AdaptiveRate"
LEASE = "cluster_rate, a lease"
SHARE = "a fixed share"
REFUSED = "refused per record"
LATE = "refused per record after 10 s"
PERFECT = "of perfect"
OF_RATE = "of the rate"
IN_DIP = "goodput in the dip"
BACK = "seconds until 80 % are back"
REFUSED_IN_DIP = "refused per record in the dip"
IN_PAUSE = "calls in the pause"
FIRST = "first call after it, s"
PERCENT, RATIO = "{:.1%}", "{:.3f}"

RATE = 500
LONG, SHORT, QUICK = 180.0, 60.0, 12.0  # seconds
OF_FEW = each(lambda: AdaptiveRate(growth=1.0))
EACH_A_SHARE = each(lambda: RateLimit(RATE / 16))


def contenders(run: Callable[..., Result]) -> dict[str, partial[Result]]:
    """What runs `AdaptiveRate` and a backoff alone."""
    return {OURS: partial(run, each(AdaptiveRate)), BACKOFF: partial(run, none)}


def _leased(tasks: int) -> Sequence[GatesOfTask]:
    return leases(SimulatedSource(), RATE, tasks)


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
        values[f"{OF_RATE}, {suffix}"] = min(share for share, _ in found)
        values[f"refused, {suffix}"] = max(refused for _, refused in found)
    return Result(values, [])


def _low(gates: Gates, quick: bool) -> Result:
    seconds = 120.0 if quick else 300.0
    values: dict[str, float | None] = {}
    for tasks, suffix in ((1, "1 task"), (4, "4 tasks")):
        service = RateCappedService(1.0, burst=1.0)
        share, refused = measure(service, tasks, 1.0, seconds, gates=gates, warm_up=30.0)
        values |= {f"{OF_RATE}, {suffix}": share, f"refused, {suffix}": refused}
    return Result(values, [])


def _dip(gates: Gates, quick: bool) -> Result:
    start, end, after = (5.0, 10.0, 6.0) if quick else (20.0, 50.0, 10.0)
    service = RateCappedService(500)

    async def control() -> None:
        await trio.sleep_until(start)
        service.rate = 100
        await trio.sleep_until(end)
        service.rate = 500

    simulate(end + after, service, gates(16), control=control)
    admitted = service.admitted
    back = (at for at in range(int(10 * after)) if between(admitted, end + at / 10, end + at / 10 + 1) >= 400)
    values = {
        IN_DIP: between(admitted, start + 2, end) / (100 * (end - start - 2)),
        BACK: next(back, 10 * after) / 10,
        REFUSED_IN_DIP: between(service.refused, start, end) / between(admitted, start, end),
    }
    return Result(values, per_second(admitted, end + after, 1.0))


def _pause(gates: Gates, quick: bool) -> Result:
    service = RateCappedService(500)
    starts: list[float] = []
    asked: list[float] = []

    async def ask_once(value: object) -> object:
        starts.append(trio.current_time())
        if trio.current_time() >= 5.0 and not asked:
            asked.append(trio.current_time())
            raise StatusError(429, retry_after=30.0)
        return await service(value)

    simulate(42.0, ask_once, [*gates(1)] * 2, capacity=5)
    end = asked[0] + 30.0
    values = {
        IN_PAUSE: float(between(starts, asked[0] + 1e-6, end)),
        FIRST: next(at - end for at in starts if at >= end),
    }
    return Result(values, per_second(starts, 42.0, 0.5))


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
            LEASE: partial(_share, _leased, LONG, tasks=64),
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
            LEASE: partial(_skew, _leased),
        },
    ),
    Experiment(
        "counted",
        "A limit that is counted in three ways",
        "1, 4 and 16 tasks with 100 slots each, for 60 s. A service admits 100 calls per second, and answers the "
        "others with 429 and `Retry-After: 1`. It counts in a token bucket of 10, in seconds of its clock, or in any "
        "second. The numbers are those of the worst of the three, after 10 s",
        "Services round `Retry-After` up to whole seconds, so a second may mean a millisecond. A gate that held "
        "back all calls for it would lose a fifth of the rate. With a backoff alone, all records of a task come back "
        "together after this second, and most are refused again.",
        "",
        {
            f"{kind}, {tasks}": form
            for tasks in ("1 task", "4 tasks", "16 tasks")
            for kind, form in ((OF_RATE, PERCENT), ("refused", RATIO))
        },
        [
            *(Criterion(f"{OF_RATE}, {tasks}", minimum=0.9) for tasks in ("1 task", "4 tasks", "16 tasks")),
            Criterion("refused, 1 task", maximum=0.01),
            Criterion("refused, 4 tasks", maximum=0.03),
            Criterion("refused, 16 tasks", maximum=0.082),
        ],
        contenders(_counted),
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
            for kind, form in ((OF_RATE, PERCENT), ("refused", RATIO))
        },
        [
            Criterion(f"{OF_RATE}, 1 task", minimum=0.85),
            Criterion("refused, 1 task", maximum=0.3),
            Criterion("refused, 4 tasks", maximum=1.2),
        ],
        contenders(_low),
    ),
    Experiment(
        "dip",
        "The limit falls and rises again",
        "16 tasks. The service admits 500 calls per second, from second 20 to 50 only 100. The first 2 s of the dip, "
        "with the calls in flight, do not count",
        "Calls that were answered. `AdaptiveRate` follows the limit down, and is back soon after it has risen.",
        "answered calls per second",
        {IN_DIP: PERCENT, BACK: "{:.1f}", REFUSED_IN_DIP: "{:.3f}"},
        [Criterion(IN_DIP, minimum=0.98), Criterion(BACK, maximum=5.0)],
        contenders(_dip),
        span=(20.0, 50.0, "100/s"),
    ),
    Experiment(
        "pause",
        "The service asks everybody to wait for 30 s",
        "Two operators of one process, with 5 slots each, share a gate. At second 5, the service answers one "
        "call with 429 and `Retry-After: 30`, which is meant for all",
        "A retry strategy obeys for one record only. The gate holds back all calls of the process.",
        "",
        {IN_PAUSE: "{:,.0f}", FIRST: "{:.2f}"},
        [Criterion(IN_PAUSE, maximum=0.0), Criterion(FIRST, maximum=3.0)],
        contenders(_pause),
    ),
]
