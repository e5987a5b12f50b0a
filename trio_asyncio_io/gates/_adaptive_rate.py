"""The gate `AdaptiveRate`: as many calls per second as the service admits."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import cbrt, inf
from random import random
from typing import Any

from .._core.checks import check_callable, check_number, check_optional_name, check_seconds
from .._core.gate import Classify, Gate, Outcome
from ._measured_rate import MeasuredRate

__all__ = ["AdaptiveRate"]

SLOWEST = 0.5  # calls per second
FASTEST = 2.0  # times the rate that was measured
SECONDS_PER_CUT = 0.5
JITTER = 0.1  # of a pause
FORGOTTEN_AFTER = 600.0  # seconds
LATE = 0.05  # seconds by which a start may be late without delaying the next ones


class AdaptiveRate(Gate):
    """Finds the rate that a service admits, from its answers "too many requests". Idle until the first of them.

    The first one starts the gate at `start` calls per second, which doubles each second. Then the rate is that of
    botocore's adaptive mode (CUBIC, RFC 9438): where w is the rate that was reached, and t the seconds since then,

        after a throttled call:  rate = cut * w
        from then on:            rate(t) = growth * (t - K)**3 + w,  K = ((1 - cut) * w / growth)**(1/3)

    It is at least 0.5 per second and at most twice the rate at which calls succeeded lately. Throttled calls cut it at
    most once per 0.5 s, and only if they started after the last cut.

    If the service states for how long to wait (`Retry-After`), no call starts for that time plus up to 10 %.

    Each process finds its own rate. Several of them share a service's limit without knowing of each other.

    Args:
        start: Calls per second after the first throttled call, above 0: your share of the limit, if you know it.
        cut: What remains of the rate after a throttled call, above 0 and below 1.
        growth: Calls per second and second cubed by which the rate grows, above 0. With few processes, 1.0 finds a
            higher limit sooner.
        max_pause: Upper limit of the seconds of a pause, at least 0.
        classify: exception -> `Outcome` or its kind. None (the default): see "throttled" in the documentation.
        name: Gates of one name share their state in one process; see `Gate`. None (the default): it is not shared.

    Raises:
        TypeError, ValueError: An argument is out of its range.

    Example:
        retry = ExponentialBackoff(5, 0.1, 10.0, retry_on=transient)
        ordered_wait(urls, fetch, timeout=10.0, gate=AdaptiveRate(), retry=retry)
    """

    is_idle = True

    def __init__(
        self,
        start: float = 10.0,
        *,
        cut: float = 0.7,
        growth: float = 0.4,
        max_pause: float = 60.0,
        classify: Classify | None = None,
        name: str | None = None,
    ) -> None:
        self.start = check_number("start", start, "calls per second above 0, finite", lambda rate: 0 < rate < inf)
        self.cut = check_number("cut", cut, "above 0 and below 1", lambda share: 0 < share < 1)
        self.growth = check_number("growth", growth, "above 0 and finite", lambda number: 0 < number < inf)
        self.max_pause = check_seconds("max_pause", max_pause, finite=True)
        self.classify = None if classify is None else check_callable("classify", classify)
        self.name = check_optional_name(name)
        self._measured = MeasuredRate()
        self._reached: float | None = None  # w; None: the rate still doubles
        self._cut_at = -inf
        self._grows_from = -inf  # later than the cut if the service asked for a pause
        self._next_start = -inf
        self._paused_until = -inf

    def rate(self, now: float) -> float:
        """Calls per second at this instant; `math.inf` while the gate is idle."""
        if self.is_idle:
            return inf
        seconds = max(0.0, now - self._grows_from)
        if self._reached is None:
            return self.start * float(2.0 ** min(seconds, 30.0))
        to_reach = cbrt((1 - self.cut) * self._reached / self.growth)
        rate: float = self.growth * (seconds - to_reach) ** 3 + self._reached
        return max(SLOWEST, min(rate, FASTEST * max(self._measured.rate, self._reached)))

    def delay(self, now: float, weight: float) -> float:  # noqa: ARG002 - it is paid by the next call
        """The seconds until the next start, and until the end of a pause."""
        return 0.0 if self.is_idle else max(0.0, self._next_start - now, self._paused_until - now)

    def started(self, now: float, weight: float) -> None:
        """Pay with the time until the next start."""
        if not self.is_idle:
            self._next_start = max(self._next_start, now - LATE) + weight / self.rate(now)

    def ended(self, now: float, seconds: float, outcome: Outcome, weight: float) -> None:
        """Measure, and cut the rate if the service asks for it."""
        if outcome.kind == "throttled":
            self._measured.add(now, 0.0)
            self._throttle(now, now - seconds)
            if outcome.retry_after is not None:
                self._pause(now, outcome.retry_after)
        elif outcome.kind in {"ok", "error"}:
            self._measured.add(now, weight)

    def _throttle(self, now: float, started: float) -> None:
        if self.is_idle:
            self.is_idle = False
            self._next_start = now
        elif started < self._cut_at or now < self._cut_at + SECONDS_PER_CUT:
            return
        else:
            rate = self.rate(now)
            self._reached = max(SLOWEST, min(rate, self._measured.rate or rate))
        self._cut_at = self._grows_from = now

    def _pause(self, now: float, retry_after: float) -> None:
        until = now + min(retry_after, self.max_pause) * (1 + JITTER * random())
        self._paused_until = max(self._paused_until, until)
        self._grows_from = max(self._grows_from, self._paused_until)

    def may_forget(self, now: float) -> bool:
        """Whether the gate is idle, or was not used for ten minutes after its last start or pause."""
        return self.is_idle or now >= max(self._next_start, self._paused_until) + FORGOTTEN_AFTER

    def configuration(self) -> dict[str, Any]:
        """The numbers, as given."""
        return {"start": self.start, "cut": self.cut, "growth": self.growth, "max_pause": self.max_pause}

    def __reduce__(self) -> tuple[Callable[..., AdaptiveRate], tuple[()]]:
        return partial(AdaptiveRate, **self.configuration(), classify=self.classify, name=self.name), ()
