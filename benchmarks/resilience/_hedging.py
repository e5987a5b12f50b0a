"""Experiments with a service of which some calls are slow, and with one that is down."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import expovariate, random
from typing import Any

import trio
from trio.testing import MockClock

from trio_asyncio_io import unordered_wait
from trio_asyncio_io.policies import hedged

from ._counting import per_second
from ._experiment import Criterion, Experiment, Result
from ._run import Function, reproducible

__all__ = ["EXPERIMENTS"]

OURS, PLAIN = "hedged", "one call only"
EXTRA, SHARE = "further calls in the outage", "per record"
GAIN, CALLS = "records per second, to without", "calls, to without"


def _one_call_in_a_hundred() -> float:
    return 1.0 if random() < 0.01 else 0.0


def _one_backend_in_ten() -> float:
    return expovariate(1 / 0.4) if random() < 0.1 else 0.0


def _measure(slow: Callable[[], float], rows: int, around: Callable[[Function], Function]) -> tuple[list[float], int]:
    """The instants of 90 % of the results, after which slots are idle, and the number of calls."""
    received: list[float] = []
    calls = 0

    async def serve(value: object) -> object:
        nonlocal calls
        calls += 1
        await trio.sleep(slow() or expovariate(1 / 0.02))
        return value

    async def run() -> None:
        async with unordered_wait(range(rows), around(serve), capacity=100, buffer=200, timeout=30.0) as results:
            received.extend([trio.current_time() async for _ in results])

    with reproducible():
        trio.run(run, clock=MockClock(autojump_threshold=0))
    return received[: rows * 9 // 10], calls


def _gain(slow: Callable[[], float], rows: int, around: Callable[[Function], Function], quick: bool) -> Result:
    rows = 2_500 if quick else rows
    plain, plain_calls = _measure(slow, rows, lambda function: function)
    received, calls = (plain, plain_calls) if around is _plain else _measure(slow, rows, around)
    values = {GAIN: plain[-1] / received[-1], CALLS: calls / plain_calls}
    return Result(values, per_second(received, received[-1], 0.25))


def _plain(function: Function) -> Function:
    return function


def _outage(around: Callable[[Function], Function], quick: bool) -> Result:
    """A service that refuses connections after the first rows."""
    rows = 500 if quick else 2_000
    calls: list[float] = []

    async def serve(value: Any) -> object:
        await trio.sleep(0.02)
        if value >= rows:
            calls.append(trio.current_time())
            raise ConnectionRefusedError
        return value

    async def run() -> None:
        options: Any = {"capacity": 100, "buffer": 200, "timeout": 30.0, "on_error": "skip"}
        async with unordered_wait(range(3 * rows), around(serve), **options) as results:
            async for _ in results:
                pass

    with reproducible():
        trio.run(run, clock=MockClock(autojump_threshold=0))
    extra = len(calls) - 2 * rows
    return Result({EXTRA: float(extra), SHARE: extra / (2 * rows)}, [])


def _experiment(
    name: str,
    title: str,
    setting: str,
    *,
    rows: int,
    slow: Callable[[], float],
    criteria: list[Criterion],
    start: str = "",
) -> Experiment:
    return Experiment(
        name,
        title,
        f"One task with 100 slots and {rows:,} records. A call takes 20 ms on average{setting}",
        f"A slot that waits for a slow call is lost for many others; a second call frees it.{start}",
        "",
        {GAIN: "{:.2f}", CALLS: "{:.3f}"},
        criteria,
        {OURS: partial(_gain, slow, rows, hedged), PLAIN: partial(_gain, slow, rows, _plain)},
    )


EXPERIMENTS = [
    _experiment(
        "slow-calls",
        "One call in a hundred is slow",
        ", one in a hundred a second",
        rows=20_000,
        slow=_one_call_in_a_hundred,
        criteria=[Criterion(GAIN, minimum=1.3), Criterion(CALLS, maximum=1.07)],
    ),
    _experiment(
        "slow-backend",
        "One backend in ten is slow",
        "; one of ten backends is 20 times as slow",
        rows=40_000,
        slow=_one_backend_in_ten,
        criteria=[Criterion(GAIN, minimum=1.3), Criterion(CALLS, maximum=1.07)],
        start=" At first, the 10 % of the budget are used: the percentile begins with the fastest calls, and rises "
        "slowly, since the results of second calls are faster.",
    ),
    _experiment(
        "healthy",
        "No backend is slow",
        "",
        rows=20_000,
        slow=lambda: 0.0,
        criteria=[Criterion(GAIN, minimum=0.99)],
    ),
    Experiment(
        "hedged-outage",
        "Second calls in an outage",
        "One task with 100 slots and a service that is down after 2,000 records. 4,000 further records fail at once, "
        "without a retry",
        "A call that fails is followed by a second one at once, as long as the budget of 10 % allows it. The account "
        "holds at most 10 calls.",
        "",
        {EXTRA: "{:,.0f}", SHARE: "{:.3f}"},
        [Criterion(EXTRA, maximum=0.1 * 4_000 + 10)],
        {OURS: partial(_outage, hedged), PLAIN: partial(_outage, _plain)},
    ),
]
