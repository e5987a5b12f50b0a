"""The limit of Netflix's concurrency-limits that follows the gradient of the latency."""

from __future__ import annotations

from statistics import fmean

from ._limit import Ewma, Limit

__all__ = ["Gradient2Limit"]

SMOOTHING = 0.2
QUEUE = 4
LONG_WINDOW = 600


class Gradient2Limit(Limit):
    """Netflix concurrency-limits, `Gradient2Limit` in a `WindowedLimit`, with their defaults.

    Where short is the mean latency of a window of a second, and long its average over 600 windows:

        gradient = long / short, at least 0.5 and at most 1.0
        limit    = 0.8 * limit + 0.2 * (gradient * limit + 4)

    The limit stays if less than half of it is used.
    """

    def __init__(self, start: int = 20, maximum: int = 200) -> None:
        super().__init__(start, samples=10)
        self._minimum, self._maximum = start, maximum
        self._long = Ewma(LONG_WINDOW)

    def update(self, latencies: list[float], peak: int) -> None:
        """See above."""
        short = fmean(latencies)
        long = self._long.add(short)
        if long > 2 * short:
            self._long.value *= 0.9
        if peak < self.limit / 2:
            return
        gradient = max(0.5, min(1.0, long / short))
        target = gradient * self.limit + QUEUE
        limit = (1 - SMOOTHING) * self.limit + SMOOTHING * target
        self.limit = max(self._minimum, min(self._maximum, limit))
