"""The adaptive limiter of failsafe-go."""

from __future__ import annotations

from collections import deque
from math import ceil, log10
from statistics import StatisticsError, correlation, fmean, median, pstdev, quantiles

from ._limit import Ewma, Limit

__all__ = ["FailsafeLimit"]

SMOOTHED = 5
LONG_WINDOW = 60
CORRELATED = 50
WARM_UP = 10
MIN_VARIATION = 0.01
MAX_FACTOR = 5.0  # of the calls at once


class FailsafeLimit(Limit):
    """failsafe-go, `adaptivelimiter`, with its defaults: the thresholds of TCP Vegas, and two correlations.

    Where short is the smoothed 90th percentile of the latency of a second, and long its average over 60 of them, the
    queue is limit * (1 - long / short). The limit moves by log10(limit): down if the queue is longer than
    6 * log10(limit), or if calls at once correlate with the latency and not with the throughput; and up if the queue is
    shorter than 3 * log10(limit).
    """

    def __init__(self, start: int = 20, maximum: int = 200) -> None:
        super().__init__(start, samples=50)
        self._maximum = maximum
        self._latest: deque[float] = deque(maxlen=SMOOTHED)
        self._short = Ewma(SMOOTHED)
        self._long = Ewma(LONG_WINDOW)
        self._history: deque[tuple[float, float, float]] = deque(maxlen=CORRELATED)

    def update(self, latencies: list[float], peak: int) -> None:
        """See above."""
        self._latest.append(quantiles(latencies, n=10)[-1])
        short = self._short.add(median(self._latest))
        long = self._long.add(short)
        self._history.append((peak, peak / short, short))
        step = max(1, int(log10(self.limit)))
        queue = ceil(self.limit * (1 - long / short))
        change = step if queue < 3 * step else 0
        if queue > 6 * step or (self.running >= int(self.limit) and self._is_overloaded()):
            change = -step
        if self.limit + change > MAX_FACTOR * peak:
            change = -step
        self.limit = max(1.0, min(self._maximum, self.limit + change))

    def _is_overloaded(self) -> bool:
        calls, throughputs, latencies = zip(*self._history, strict=True)
        of_throughput = _correlation(calls, throughputs)
        of_latency = _correlation(calls, latencies)
        variation = pstdev(throughputs) / fmean(throughputs) if len(throughputs) >= WARM_UP else 0.0
        return of_throughput < 0 or (of_latency > 0.5 and (of_throughput < 0.3 or variation < 0.2))


def _correlation(calls: tuple[float, ...], values: tuple[float, ...]) -> float:
    """Pearson's. 0.0 for few or almost equal values."""
    if len(calls) < WARM_UP or min(pstdev(each) / fmean(each) for each in (calls, values)) < MIN_VARIATION:
        return 0.0
    try:
        return correlation(calls, values)
    except StatisticsError:
        return 0.0
