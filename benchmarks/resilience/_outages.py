"""An experiment with a service that does not answer."""

from __future__ import annotations

from functools import partial
from typing import Any

import trio
from trio.testing import MockClock

from trio_asyncio_io import ExponentialBackoff, unordered_wait
from trio_asyncio_io.gates import CircuitBreaker, Gate

from ._counting import between, per_second
from ._experiment import Criterion, Experiment, Result
from ._run import Function, reproducible
from .rivals import ClientThrottling

__all__ = ["EXPERIMENTS"]

CAPACITY, LATENCY = 10, 0.1
NORMAL = CAPACITY / LATENCY  # calls per second
FAILED = "failed records"
CALLS = "calls in the outage, of normal"
BACK = "10 s after it, of normal"


class _Service:
    """Refuses connections from second 20 on, for this many seconds."""

    def __init__(self, outage: float) -> None:
        self.end = 20.0 + outage
        self.starts: list[float] = []
        self.answered: list[float] = []

    async def __call__(self, value: object) -> object:
        self.starts.append(trio.current_time())
        await trio.sleep(LATENCY)
        if 20.0 <= trio.current_time() < self.end:
            raise ConnectionRefusedError
        self.answered.append(trio.current_time())
        return value


def _outage(gate: Any, around: Any, quick: bool) -> Result:
    outage = 10.0 if quick else 60.0
    service = _Service(outage)
    seconds = service.end + 30.0
    with reproducible():
        failed = trio.run(_run, seconds, around(service), gate(), clock=MockClock(autojump_threshold=0))
    values = {
        FAILED: float(failed),
        CALLS: between(service.starts, 20.1, service.end) / (NORMAL * outage),
        BACK: between(service.answered, service.end + 10, service.end + 15) / (NORMAL * 5),
    }
    return Result(values, per_second(service.starts, seconds))


async def _run(seconds: float, function: Function, gate: Gate | None) -> int:
    retry = ExponentialBackoff(4, 0.1, 2.0, retry_on=Exception)
    options: Any = {
        "capacity": CAPACITY,
        "buffer": 2 * CAPACITY,
        "timeout": 30.0,
        "retry": retry,
        "gate": gate,
        "on_error": "skip",
    }
    async with unordered_wait(range(10**9), function, **options) as results:
        with trio.move_on_after(seconds):
            async for _ in results:
                pass
        return results.statistics().failed


GATES: dict[str, Any] = {
    "CircuitBreaker": CircuitBreaker,
    "backoff only": lambda: None,
}
EXPERIMENTS = [
    Experiment(
        "outage",
        "The service is down for a minute",
        "One task with 10 slots, 4 retries with backoff, and calls of 100 ms. From second 20 to 80, each call fails "
        "with a connection error",
        "Calls that were started. The breaker holds back the records, and needs few probes to find out that the "
        "service is back. Without it, each record fails after its retries.",
        "started calls per second",
        {FAILED: "{:,.0f}", CALLS: "{:.2%}", BACK: "{:.1%}"},
        [Criterion(FAILED, maximum=0.0), Criterion(CALLS, maximum=0.01), Criterion(BACK, minimum=0.90)],
        {
            **{name: partial(_outage, gate, lambda function: function) for name, gate in GATES.items()},
            "client-side throttling": partial(_outage, lambda: None, ClientThrottling),
        },
        span=(20.0, 80.0, "down"),
        log=True,
    )
]
