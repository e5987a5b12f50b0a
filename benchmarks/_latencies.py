"""Latencies of a service with a long tail and of one without; the same in every run."""

from __future__ import annotations

from random import Random
from statistics import fmean

MEAN_SECONDS = 0.020
STRAGGLER_SECONDS = 1.0
STRAGGLER_SHARE = 0.01


def _draw(random: Random) -> float:
    if random.random() < STRAGGLER_SHARE:
        return STRAGGLER_SECONDS
    return random.expovariate(1 / MEAN_SECONDS)


_RANDOM = Random(1)
_SECONDS = [_draw(_RANDOM) for _ in range(20_000)]
_STEADY_SECONDS = [_RANDOM.uniform(0.5 * MEAN_SECONDS, 1.5 * MEAN_SECONDS) for _ in range(20_000)]


def seconds_of(call: int) -> float:
    """The latency of this call: exponential with a mean of 20 ms, but one second for one in a hundred."""
    return _SECONDS[call % len(_SECONDS)]


def steady_seconds_of(call: int) -> float:
    """The latency of this call without stragglers: between 10 and 30 ms, with the same mean."""
    return _STEADY_SECONDS[call % len(_STEADY_SECONDS)]


def mean_latency() -> float:
    """The mean of all latencies. Little's law: capacity / mean latency is the maximum throughput."""
    return fmean(_SECONDS)
