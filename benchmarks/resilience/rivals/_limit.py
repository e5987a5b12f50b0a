"""What limits of concurrency have in common."""

from __future__ import annotations

from abc import abstractmethod
from math import inf

from trio_asyncio_io.gates import Gate, Outcome

__all__ = ["Ewma", "Limit"]


class Limit(Gate):
    """At most `limit` calls at once. Measures the calls in windows of a second.

    Attributes:
        limit: The number of calls that may run at once.
        running: Those that run now.
    """

    def __init__(self, start: int, samples: int) -> None:
        self.limit = float(start)
        self.running = 0
        self._samples = samples
        self._latencies: list[float] = []
        self._peak = 0
        self._since = 0.0

    def delay(self, now: float, weight: float) -> float:
        """0.0 below the limit."""
        return 0.0 if self.running < int(self.limit) else inf

    def started(self, now: float, weight: float) -> None:
        """Count a call."""
        self.running += 1
        self._peak = max(self._peak, self.running)

    def ended(self, now: float, seconds: float, outcome: Outcome, weight: float) -> None:
        """Measure a call that returned, and update the limit at the end of a window."""
        if outcome.kind == "ok":
            self._latencies.append(seconds)
        if now >= self._since + 1.0 and len(self._latencies) >= self._samples:
            self.update(self._latencies, self._peak)
            self._latencies, self._peak, self._since = [], self.running, now
        self.running -= 1

    @abstractmethod
    def update(self, latencies: list[float], peak: int) -> None:
        """Set the limit, with the latencies of a window and its largest number of calls at once."""


class Ewma:
    """An exponential average, and that of all values for the first ten."""

    def __init__(self, age: int, warm_up: int = 10) -> None:
        self.value = 0.0
        self._factor = 2 / (age + 1)
        self._warm_up = warm_up
        self._count = 0

    def add(self, value: float) -> float:
        """The average with this value."""
        self._count += 1
        factor = 1 / self._count if self._count <= self._warm_up else self._factor
        self.value += (value - self.value) * factor
        return self.value
