"""A rate with additive increase and multiplicative decrease."""

from __future__ import annotations

from math import inf

from trio_asyncio_io.gates import Gate, Outcome

__all__ = ["AimdRate"]

SLOWEST = 0.5
SECONDS_PER_CUT = 0.5


class AimdRate(Gate):
    """Chiu and Jain, 1989: after a refusal 0.7 x the rate, and else 1 call per second more each second.

    As with `AdaptiveRate`, the first refusal starts it, at 10 per second, which doubles each second until the next one.
    """

    is_idle = True

    def __init__(self, start: float = 10.0, cut: float = 0.7, growth: float = 1.0) -> None:
        self._start = start
        self._cut = cut
        self._growth = growth
        self._base: float | None = None  # None: the rate still doubles
        self._cut_at = -inf
        self._next_start = -inf

    def rate(self, now: float) -> float:
        """Calls per second."""
        seconds = now - self._cut_at
        return self._start * 2.0 ** min(seconds, 30.0) if self._base is None else self._base + self._growth * seconds

    def delay(self, now: float, weight: float) -> float:
        """The seconds until the next start."""
        return 0.0 if self.is_idle else max(0.0, self._next_start - now)

    def started(self, now: float, weight: float) -> None:
        """Space the calls evenly."""
        if not self.is_idle:
            self._next_start = max(self._next_start, now) + 1 / self.rate(now)

    def ended(self, now: float, seconds: float, outcome: Outcome, weight: float) -> None:
        """Cut the rate after a refusal of a call that started since the last cut."""
        if outcome.kind != "throttled" or now < self._cut_at + SECONDS_PER_CUT or now - seconds < self._cut_at:
            return
        if self.is_idle:
            self.is_idle = False
        else:
            self._base = max(SLOWEST, self._cut * self.rate(now))
        self._cut_at = now
