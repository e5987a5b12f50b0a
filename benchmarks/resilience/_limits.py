"""Experiments with a limit that changes, and with a service that asks everybody to wait."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import trio

from trio_asyncio_io.gates import AdaptiveRate, Gate

from ._counting import between, per_second
from ._experiment import Criterion, Experiment, Result
from ._gates import BACKOFF
from ._run import simulate
from ._services import RateCappedService, StatusError

__all__ = ["EXPERIMENTS"]

IN_DIP = "goodput in the dip"
BACK = "seconds until 80 % are back"
IN_PAUSE = "calls in the pause"
FIRST = "first call after it, s"


def _contenders(run: Callable[..., Result]) -> dict[str, partial[Result]]:
    return {"AdaptiveRate": partial(run, AdaptiveRate), BACKOFF: partial(run, lambda: None)}


def _dip(gate: Callable[[], Gate | None], quick: bool) -> Result:
    start, end, after = (5.0, 10.0, 6.0) if quick else (20.0, 50.0, 10.0)
    service = RateCappedService(500)

    async def control() -> None:
        await trio.sleep_until(start)
        service.rate = 100
        await trio.sleep_until(end)
        service.rate = 500

    simulate(end + after, service, [gate() for _ in range(16)], control=control)
    admitted = service.admitted
    back = (at for at in range(int(10 * after)) if between(admitted, end + at / 10, end + at / 10 + 1) >= 400)
    values = {
        IN_DIP: between(admitted, start + 2, end) / (100 * (end - start - 2)),
        BACK: next(back, 10 * after) / 10,
        "refused per record in the dip": between(service.refused, start, end) / between(admitted, start, end),
    }
    return Result(values, per_second(admitted, end + after, 1.0))


def _pause(gate: Callable[[], Gate | None], quick: bool) -> Result:
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
    simulate(42.0, ask_once, [common] * 2, capacity=5)
    end = asked[0] + 30.0
    values = {
        IN_PAUSE: float(between(starts, asked[0] + 1e-6, end)),
        FIRST: next(at - end for at in starts if at >= end),
    }
    return Result(values, per_second(starts, 42.0, 0.5))


PERCENT = "{:.1%}"

EXPERIMENTS = [
    Experiment(
        "dip",
        "The limit falls and rises again",
        "16 tasks. The service admits 500 calls per second, from second 20 to 50 only 100. The first 2 s of the dip, "
        "with the calls in flight, do not count",
        "Calls that were answered. `AdaptiveRate` follows the limit down, and is back soon after it has risen.",
        "answered calls per second",
        {IN_DIP: PERCENT, BACK: "{:.1f}", "refused per record in the dip": "{:.3f}"},
        [Criterion(IN_DIP, minimum=0.98), Criterion(BACK, maximum=5.0)],
        _contenders(_dip),
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
        _contenders(_pause),
    ),
]
