"""How many calls a second succeed, as a smoothed number."""

from __future__ import annotations

__all__ = ["MeasuredRate"]

SECONDS = 0.5
WEIGHT_OF_LATEST = 0.8


class MeasuredRate:
    """The weights per second, in windows of half a second, smoothed exponentially as in botocore.

    A window of a second and longer had a pause, which is not a slow service, or few calls: the rate only rises.

    Attributes:
        rate: Weight per second; 0.0 until the first window has ended.
    """

    def __init__(self) -> None:
        self.rate = 0.0
        self._since = 0.0
        self._sum = 0.0

    def add(self, now: float, weight: float) -> None:
        """Count a call that succeeded, or one that did not, with the weight 0.0."""
        seconds = now - self._since
        if seconds >= 2 * SECONDS:
            self.rate = max(self.rate, self._sum / seconds)
            self._since, self._sum = now, 0.0
        elif seconds >= SECONDS:
            latest = self._sum / seconds
            self.rate = WEIGHT_OF_LATEST * latest + (1 - WEIGHT_OF_LATEST) * self.rate if self.rate else latest
            self._since, self._sum = now, 0.0
        self._sum += weight
