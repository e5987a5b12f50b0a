"""The gate `RateLimit`: calls start no faster than a service allows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any

from .._core.arrival import ROUNDING, arrival_after
from .._core.checks import check_callable, check_number, check_optional_name
from .._core.gate import Gate

__all__ = ["RateLimit"]


class RateLimit(Gate):
    """Calls start at most `rate` times per second.

    In every span of w seconds, wherever it begins,

        weights of the calls that start <= burst + rate * w

    The limit is a token bucket of `burst` tokens, which is full at the start, stored as one instant: the theoretical
    arrival time of the generic cell rate algorithm (ITU-T I.371). A call that weighs more than the bucket holds starts
    when the bucket is full, and the next ones wait until its weight has been paid back.

    For several limits, such as requests and tokens per minute, give the operator several gates. A process has one limit
    for all calls that use this object, or this name; in Spark, that is each Python worker.

    Args:
        rate: Weight per second, above 0 and finite. Without `weight`: calls per second.
        burst: What may start at once after an idle time, above 0 and finite. With the default, 1.0, calls without a
            weight start evenly spaced.
        weight: The arguments of a call -> what it weighs, such as an estimate of its tokens, at least 0 and finite.
            `settle` corrects it during the call. None (the default): each call weighs 1.
        name: Gates of one name share their state in one process; see `Gate`. None (the default): it is not shared.

    Raises:
        TypeError, ValueError: An argument is out of its range.

    Example:
        tokens = RateLimit(100_000 / 60, burst=10_000, weight=lambda prompt: len(prompt) / 4)
        gate = [RateLimit(50), tokens]
        ordered_wait(prompts, ask, timeout=60.0, gate=gate)
    """

    def __init__(
        self,
        rate: float,
        *,
        burst: float = 1.0,
        weight: Callable[..., float] | None = None,
        name: str | None = None,
    ) -> None:
        self.rate = _check("rate", rate, "per second, above 0 and finite")
        self.burst = _check("burst", burst, "above 0 and finite")
        self.weight = None if weight is None else check_callable("weight", weight)
        self.name = check_optional_name(name)
        self._theoretical_arrival = -inf

    def delay(self, now: float, weight: float) -> float:
        """The seconds until the bucket holds the weight, or is full."""
        delay = self._theoretical_arrival - max(0.0, self.burst - weight) / self.rate - now
        return max(delay, ROUNDING) if delay > 0 else 0.0

    def started(self, now: float, weight: float) -> None:
        """Take the weight from the bucket."""
        self._theoretical_arrival = arrival_after(max(self._theoretical_arrival, now), weight, self.rate)

    def may_forget(self, now: float) -> bool:
        """Whether the bucket is full."""
        return now >= self._theoretical_arrival

    def correct(self, weight: float, actual: float) -> None:
        """Take the difference from the bucket, or put it back."""
        self._theoretical_arrival += (actual - weight) / self.rate

    def configuration(self) -> dict[str, Any]:
        """The rate and the burst."""
        return {"rate": self.rate, "burst": self.burst}

    def __reduce__(self) -> tuple[Callable[..., RateLimit], tuple[()]]:
        return partial(RateLimit, **self.configuration(), weight=self.weight, name=self.name), ()


def _check(name: str, value: float, legal: str) -> float:
    return check_number(name, value, legal, lambda number: 0 < number < inf)
