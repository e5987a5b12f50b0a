"""Recent latencies: percentiles of the last successes."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from typing import Final

__all__ = ["RecentLatencies"]

MAX_SAMPLES: Final = 1000
MIN_SAMPLES: Final = 50


class RecentLatencies:
    """The latencies of the last 1,000 successes."""

    __slots__ = ("_by_age", "_sorted")

    def __init__(self) -> None:
        self._by_age: deque[float] = deque()
        self._sorted: list[float] = []

    def add(self, seconds: float) -> None:
        """Count a success."""
        if len(self._by_age) == MAX_SAMPLES:
            del self._sorted[bisect_left(self._sorted, self._by_age.popleft())]
        self._by_age.append(seconds)
        insort(self._sorted, seconds)

    def percentile(self, percent: int) -> float | None:
        """The latency that so many percent do not exceed. None: there are fewer than 50."""
        count = len(self._sorted)
        return None if count < MIN_SAMPLES else self._sorted[-(-count * percent // 100) - 1]
