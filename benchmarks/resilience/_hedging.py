"""An experiment with a service of which some calls are slow."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import expovariate, random

import trio
from trio.testing import MockClock

from trio_asyncio_io import unordered_wait
from trio_asyncio_io.policies import hedged

from ._counting import per_second
from ._experiment import Criterion, Experiment, Result
from ._run import Function, reproducible

__all__ = ["EXPERIMENTS"]

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


def _gain(slow: Callable[[], float], around: Callable[[Function], Function], quick: bool) -> Result:
    rows = 2_500 if quick else 5_000
    plain, plain_calls = _measure(slow, rows, lambda function: function)
    received, calls = (plain, plain_calls) if around is _plain else _measure(slow, rows, around)
    values = {GAIN: plain[-1] / received[-1], CALLS: calls / plain_calls}
    return Result(values, per_second(received, received[-1], 0.25))


def _plain(function: Function) -> Function:
    return function


def _experiment(
    name: str, title: str, setting: str, slow: Callable[[], float], criteria: list[Criterion]
) -> Experiment:
    return Experiment(
        name,
        title,
        f"One task with 100 slots. A call takes 20 ms on average{setting}",
        "Results. A slot that waits for a slow call is lost for many others; a second call frees it.",
        "results per second",
        {GAIN: "{:.2f}", CALLS: "{:.3f}"},
        criteria,
        {"hedged": partial(_gain, slow, hedged), "one call only": partial(_gain, slow, _plain)},
    )


EXPERIMENTS = [
    _experiment(
        "slow-calls",
        "One call in a hundred is slow",
        ", one in a hundred a second",
        _one_call_in_a_hundred,
        [Criterion(GAIN, minimum=1.3), Criterion(CALLS, maximum=1.1)],
    ),
    _experiment(
        "slow-backend",
        "One backend in ten is slow",
        "; one of ten backends is 20 times as slow",
        _one_backend_in_ten,
        [Criterion(GAIN, minimum=1.3), Criterion(CALLS, maximum=1.1)],
    ),
    _experiment(
        "healthy",
        "No backend is slow",
        "",
        lambda: 0.0,
        [Criterion(GAIN, minimum=0.99)],
    ),
]
