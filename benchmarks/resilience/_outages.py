"""Experiments with a service that does not answer: batches, which wait, and streams, which must go on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import trio
from trio.testing import MockClock

from trio_asyncio_io import unordered_wait
from trio_asyncio_io.gates import Auto, CircuitBreaker, Gate

from ._counting import between, per_second
from ._experiment import Criterion, Experiment, Result
from ._run import BACKOFF, Function, ReproducibleBackoff, reproducible
from ._services import StatusError

CAPACITY, LATENCY = 10, 0.1
NORMAL = CAPACITY / LATENCY  # calls per second
FAILED = "failed records"
CALLS = "calls in the outage, of normal"
BACK = "10 s after it, of normal"
LONGEST = "longest delay of a row, s"
ARRIVALS = 50.0  # rows per second of a stream
AUTO, PAUSE, FAIL = 'capacity="auto"', "CircuitBreaker", 'CircuitBreaker(mode="fail")'


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


def _outage(gate: Any, quick: bool) -> Result:
    outage = 10.0 if quick else 60.0
    service = _Service(outage)
    seconds = service.end + 30.0
    with reproducible():
        failed = trio.run(_run, seconds, service, gate(), clock=MockClock(autojump_threshold=0))
    values = {
        FAILED: float(failed),
        CALLS: between(service.starts, 20.1, service.end) / (NORMAL * outage),
        BACK: between(service.answered, service.end + 10, service.end + 15) / (NORMAL * 5),
    }
    return Result(values, per_second(service.starts, seconds))


async def _run(seconds: float, function: Function, gate: Gate | None) -> int:
    async with unordered_wait(range(10**9), function, **_options(gate)) as results:
        with trio.move_on_after(seconds):
            async for _ in results:
                pass
        failed: int = results.statistics().failed
        return failed


def _options(gate: Gate | None) -> dict[str, Any]:
    retry = ReproducibleBackoff(4, 0.1, 2.0, retry_on=(ConnectionError, StatusError))
    common: dict[str, Any] = {"capacity": CAPACITY, "buffer": 2 * CAPACITY, "timeout": 30.0, "on_error": "skip"}
    return {**common, "retry": retry, "gate": gate}


def _stream(gate: Any, quick: bool) -> Result:
    service = _Service(10.0 if quick else 60.0)
    seconds = service.end + 30.0
    with reproducible():
        failed, delays = trio.run(_run_stream, seconds, service, gate(), clock=MockClock(autojump_threshold=0))
    values = {
        FAILED: float(failed),
        LONGEST: max(delays),
        CALLS: between(service.starts, 20.1, service.end) / (ARRIVALS * (service.end - 20.0)),
    }
    return Result(values)


async def _run_stream(seconds: float, function: Function, gate: Gate | None) -> tuple[int, list[float]]:
    """How many rows failed, and for each row with a result, the time since it arrived."""

    async def rows() -> AsyncIterator[float]:
        for number in range(int(seconds * ARRIVALS)):
            arrival = number / ARRIVALS
            if trio.current_time() < arrival:
                await trio.sleep_until(arrival)
            yield arrival

    async with unordered_wait(rows(), function, **_options(gate)) as results:
        delays = [trio.current_time() - arrival async for arrival in results]
        return results.statistics().failed, delays


EXPERIMENTS = [
    Experiment(
        name="outage",
        title="The service is down for a minute",
        setting=(
            "One task with 10 slots, 4 retries with backoff, and calls of 100 ms. From second 20 to 80, each call "
            "fails with a connection error"
        ),
        reading=(
            "Calls that were started. Both gates hold back the records, and probe the service with few calls. Each "
            'probe is an attempt of a record: with `capacity="auto"` and only 4 retries, some records fail. Without a '
            "gate, most records of the outage fail."
        ),
        formats={FAILED: "{:,.0f}", CALLS: "{:.2%}", BACK: "{:.1%}"},
        criteria=[
            Criterion(FAILED, maximum=10.0),
            Criterion(CALLS, maximum=0.01),
            Criterion(BACK, minimum=0.90),
            Criterion(FAILED, maximum=0.0, of=PAUSE),
            Criterion(CALLS, maximum=0.01, of=PAUSE),
        ],
        contenders={
            AUTO: partial(_outage, partial(Auto, most=CAPACITY)),
            PAUSE: partial(_outage, CircuitBreaker),
            BACKOFF: partial(_outage, lambda: None),
        },
        y_label="started calls per second",
        span=(20.0, 80.0, "down"),
        log=True,
    ),
    Experiment(
        name="stream",
        title="A stream goes on while the service is down",
        setting=(
            "50 rows arrive per second, at an operator with 10 slots and 4 retries. Otherwise the setup is the same"
        ),
        reading=(
            "While calls are held back, the rows wait for the service, and for those before them. With "
            '`mode="fail"`, rows of the outage fail at once, and later rows do not wait.'
        ),
        formats={FAILED: "{:,.0f}", LONGEST: "{:.1f}", CALLS: "{:.2%}"},
        criteria=[
            Criterion(CALLS, maximum=0.02),
            Criterion(FAILED, maximum=0.0, of=PAUSE),
            Criterion(CALLS, maximum=0.01, of=FAIL),
            Criterion(LONGEST, maximum=10.0, of=FAIL),
        ],
        contenders={
            AUTO: partial(_stream, partial(Auto, most=CAPACITY)),
            PAUSE: partial(_stream, CircuitBreaker),
            BACKOFF: partial(_stream, lambda: None),
            FAIL: partial(_stream, partial(CircuitBreaker, "fail")),
        },
    ),
]
