"""Experiments with a service that limits the rate, and answers 429."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf

import trio

from trio_asyncio_io.gates import AdaptiveRate, Gate, RateLimit

from ._counting import between, per_second
from ._experiment import Criterion, Experiment, Result
from ._run import Function, simulate
from ._services import RateCappedService, StatusError
from .rivals import AimdRate, ClientThrottling

__all__ = ["EXPERIMENTS"]

OURS = "AdaptiveRate"
BACKOFF = "backoff only"
THROTTLING = "client-side throttling"
REFUSED = "refused per record"
BACK = "seconds until 80 % are back"
REFUSALS = "refused calls per second"
ANSWERS = "answered calls per second"


def _contenders(
    run: Callable[..., Result], ours: Callable[[], Gate], share: float | None
) -> dict[str, partial[Result]]:
    """What `run` needs for each: a gate for each task, and what is around the function."""
    gates: dict[str, Callable[[], Gate | None]] = {OURS: ours, "AIMD": AimdRate, BACKOFF: lambda: None}
    if share is not None:
        gates["a fixed share"] = lambda: RateLimit(share)
    contenders = {name: partial(run, gate, lambda function: function) for name, gate in gates.items()}
    return {**contenders, THROTTLING: partial(run, lambda: None, ClientThrottling)}


def _share(gate: Callable[[], Gate | None], around: Callable[[Function], Function], quick: bool) -> Result:
    seconds = 12.0 if quick else 40.0
    service = RateCappedService(500)
    simulate(seconds, service, [gate() for _ in range(16)], around=around)
    late = between(service.refused, 10, inf) / between(service.admitted, 10, inf)
    values = {
        "goodput": len(service.admitted) / (500 * seconds),
        REFUSED: len(service.refused) / len(service.admitted),
        "after 10 s": late,
    }
    return Result(values, per_second(service.refused, seconds))


def _skew(gate: Callable[[], Gate | None], around: Callable[[Function], Function], quick: bool) -> Result:
    seconds = 5 if quick else 40
    service = RateCappedService(500)
    rows = 500 * seconds
    shares = [3 * rows // 16] * 4 + [rows // 48] * 12
    took = simulate(10 * seconds, service, [gate() for _ in shares], rows=shares, around=around)
    values = {"of perfect": seconds / took, REFUSED: len(service.refused) / len(service.admitted)}
    return Result(values, per_second(service.admitted, took))


def _dip(gate: Callable[[], Gate | None], around: Callable[[Function], Function], quick: bool) -> Result:
    start, end, after = (5.0, 10.0, 6.0) if quick else (8.0, 20.0, 8.0)
    service = RateCappedService(500)

    async def control() -> None:
        await trio.sleep_until(start)
        service.rate = 100
        await trio.sleep_until(end)
        service.rate = 500

    simulate(end + after, service, [gate() for _ in range(16)], around=around, control=control)
    back = (at for at in range(int(10 * after)) if between(service.admitted, end + at / 10, end + at / 10 + 1) >= 400)
    values = {
        "goodput in the dip": between(service.admitted, start + 2, end) / (100 * (end - start - 2)),
        BACK: next(back, 10 * after) / 10,
        "refused per record in the dip": between(service.refused, start, end) / between(service.admitted, start, end),
    }
    return Result(values, per_second(service.admitted, end + after, 1.0))


def _pause(gate: Callable[[], Gate | None], around: Callable[[Function], Function], quick: bool) -> Result:
    service = RateCappedService(500)
    starts: list[float] = []
    asked: list[float] = []

    async def ask_once(value: object) -> object:
        starts.append(trio.current_time())
        if trio.current_time() >= 5.0 and not asked:
            asked.append(trio.current_time())
            raise StatusError(429, retry_after=30.0)
        return await service(value)

    common = gate()
    simulate(42.0, ask_once, [common] * 2, capacity=5, around=around)
    end = asked[0] + 30.0
    values = {
        "calls in the pause": float(between(starts, asked[0] + 1e-6, end)),
        "first call after it, s": next(at - end for at in starts if at >= end),
    }
    return Result(values, per_second(starts, 42.0, 0.5))


PERCENT, RATIO = "{:.1%}", "{:.3f}"

EXPERIMENTS = [
    Experiment(
        "rate",
        "16 tasks share a rate",
        "16 tasks with 100 slots each, for 40 s. The service admits 500 calls per second of all tasks, with a burst "
        "of 50, and answers the others with 429",
        "Calls that were refused. A backoff alone sends each refused call again and again. With `AdaptiveRate`, each "
        "task finds its share, without knowing of the others.",
        REFUSALS,
        {"goodput": PERCENT, REFUSED: RATIO, "after 10 s": RATIO},
        [Criterion("goodput", minimum=0.96), Criterion("after 10 s", maximum=0.05)],
        _contenders(_share, partial(AdaptiveRate, growth=1.0), 500 / 16),
        log=True,
    ),
    Experiment(
        "skew",
        "A few tasks have most of the rows",
        "16 tasks have 20,000 records, 4 of them three quarters of these. The service admits 500 calls per second",
        "Calls that were answered, until the last record of all. A fixed share is wasted as soon as the small tasks "
        "have ended. With `AdaptiveRate`, the others take it over. The start costs "
        "some seconds, so a longer run is nearer to perfect.",
        ANSWERS,
        {"of perfect": PERCENT, REFUSED: RATIO},
        [Criterion("of perfect", minimum=0.85)],
        {
            name: run
            for name, run in _contenders(_skew, partial(AdaptiveRate, growth=1.0), 500 / 16).items()
            if name != THROTTLING  # the last records would take minutes
        },
    ),
    Experiment(
        "dip",
        "The limit falls and rises again",
        "16 tasks. The service admits 500 calls per second, from second 8 to 20 only 100",
        "Calls that were answered. `AdaptiveRate` follows the limit down, and is back soon after it has risen.",
        ANSWERS,
        {"goodput in the dip": PERCENT, BACK: "{:.1f}", "refused per record in the dip": RATIO},
        [Criterion("goodput in the dip", minimum=0.98), Criterion(BACK, maximum=5.0)],
        _contenders(_dip, AdaptiveRate, None),
        span=(8.0, 20.0, "100/s"),
    ),
    Experiment(
        "pause",
        "The service asks everybody to wait for 30 s",
        "Two operators of one process, with 5 slots each, share a gate. At second 5, the service answers one "
        "call with 429 and `Retry-After: 30`, which is meant for all",
        "Calls that were started. A retry strategy obeys for one record only. The gate holds back all calls of the "
        "process.",
        "started calls per second",
        {"calls in the pause": "{:.0f}", "first call after it, s": "{:.2f}"},
        [Criterion("calls in the pause", maximum=0.0), Criterion("first call after it, s", maximum=3.0)],
        _contenders(_pause, AdaptiveRate, None),
        span=(5.0, 35.0, "Retry-After: 30"),
        log=True,
    ),
]
