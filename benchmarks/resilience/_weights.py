"""An experiment with estimates of weights that are far too high."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import uniform

import trio

from trio_asyncio_io.gates import RateLimit, settle

from ._experiment import Criterion, Experiment, Result
from ._run import simulate

__all__ = ["EXPERIMENTS", "measure_weights"]

RATE, BURST, TOKENS = 1_000.0, 1_000.0, 50.0
SHARE, MOST = "of the rate", "most in 10 s, of the allowed"


def measure_weights(make: Callable[[], RateLimit], latency: float, seconds: float) -> tuple[float, float]:
    """The share of the rate that is used after 10 s, and the most of any 10 s, compared with burst + rate * 10."""
    used: list[tuple[float, float]] = []

    async def ask(value: object) -> object:
        tokens = TOKENS * uniform(0.5, 1.5)
        used.append((trio.current_time(), tokens))
        await trio.sleep(latency)
        settle(tokens)
        return value

    simulate(seconds, ask, [make()])
    spans = (sum(tokens for at, tokens in used if start <= at < start + 10) for start, _ in used[::20])
    share = sum(tokens for at, tokens in used if at >= 10) / (RATE * (seconds - 10))
    return share, max(spans) / (BURST + 10 * RATE)


def _limit(factor: float) -> RateLimit:
    return RateLimit(RATE, burst=BURST, weight=lambda value: factor * TOKENS)


def _weights(factor: float, latency: float, quick: bool) -> Result:
    share, most = measure_weights(partial(_limit, factor), latency, 20.0 if quick else 60.0)
    return Result({SHARE: share, MOST: most}, [])


EXACT, HIGH, HIGH_AND_SLOW = "estimates that are right", "ten times too high", "ten times too high, calls of 1 s"

EXPERIMENTS = [
    Experiment(
        "weights",
        "Estimates of tokens that are ten times too high",
        "One task with 100 slots, for 60 s. The service allows 1,000 tokens per second, with a burst of 1,000. A call "
        "of 0.5 s uses 25 to 75 of them; `RateLimit` has an estimate, and `settle` states the tokens at the end",
        "Without a correction of the estimates, the calls that run would reserve ten times what they use. The second "
        "number shows that the limit holds for the real tokens.",
        "",
        {SHARE: "{:.1%}", MOST: "{:.2f}"},
        [
            *(Criterion(SHARE, minimum=0.9, of=name) for name in (HIGH, HIGH_AND_SLOW)),
            *(Criterion(MOST, maximum=1.02, of=name) for name in (EXACT, HIGH, HIGH_AND_SLOW)),
        ],
        {
            HIGH: partial(_weights, 10.0, 0.5),
            HIGH_AND_SLOW: partial(_weights, 10.0, 1.0),
            EXACT: partial(_weights, 1.0, 0.5),
        },
    )
]
