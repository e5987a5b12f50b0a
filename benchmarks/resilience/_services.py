"""Simulated services, on Trio's clock."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from math import inf
from random import uniform
from typing import Any

import trio

__all__ = [
    "FixedWindowService",
    "KneeService",
    "LimitedService",
    "RateCappedService",
    "SlidingWindowService",
    "StatusError",
]


ROUNDING = 1e-9


class StatusError(Exception):
    """An error response."""

    def __init__(self, status: int, retry_after: float | None = None) -> None:
        super().__init__(status)
        self.status = status
        if retry_after is not None:
            self.retry_after = retry_after


class LimitedService(ABC):
    """Answers the calls above its limit with 429.

    Args:
        latency: Seconds of an admitted call. A refused one takes a tenth.
        retry_after: The `Retry-After` of a refusal in seconds, or None.
        jitter: The share of the latency by which it varies at random.

    Attributes:
        admitted, refused: The instants of the calls.
    """

    def __init__(self, latency: float = 0.05, retry_after: float | None = None, jitter: float = 0.0) -> None:
        self.latency = latency
        self.retry_after = retry_after
        self.jitter = jitter
        self.admitted: list[float] = []
        self.refused: list[float] = []

    @abstractmethod
    def admits(self, now: float) -> bool:
        """Whether the limit allows a call at this instant, which counts then."""

    async def __call__(self, value: object) -> object:
        """Answer a call."""
        now = trio.current_time()
        seconds = self.latency * (uniform(1 - self.jitter, 1 + self.jitter) if self.jitter else 1.0)
        if not self.admits(now):
            self.refused.append(now)
            await trio.sleep(seconds / 10)
            raise StatusError(429, self.retry_after)
        self.admitted.append(now)
        await trio.sleep(seconds)
        return value


class RateCappedService(LimitedService):
    """Admits `rate` calls per second: a token bucket.

    Args:
        rate: Calls per second. May be changed.
        burst: Calls that the bucket holds. None: a tenth of the rate.
        latency, retry_after, jitter: See `LimitedService`.
    """

    def __init__(
        self,
        rate: float,
        latency: float = 0.05,
        retry_after: float | None = None,
        *,
        burst: float | None = None,
        jitter: float = 0.0,
    ) -> None:
        super().__init__(latency, retry_after, jitter)
        self.rate = rate
        self._burst = burst
        self._tokens = self._full
        self._at = 0.0

    @property
    def _full(self) -> float:
        return self.rate * 0.1 if self._burst is None else self._burst

    def admits(self, now: float) -> bool:
        """Whether the bucket holds a token."""
        self._tokens = min(self._full, self._tokens + (now - self._at) * self.rate)
        self._at = now
        if self._tokens < 1 - ROUNDING:
            return False
        self._tokens -= 1
        return True


class FixedWindowService(LimitedService):
    """Admits `limit` calls in each window of the clock, the first of which began `phase` seconds before the start.

    The other options are those of `LimitedService`.
    """

    def __init__(self, limit: int, window: float = 1.0, *, phase: float = 0.0, **options: Any) -> None:
        super().__init__(**options)
        self._limit = limit
        self._window = window
        self._phase = phase
        self._number, self._calls = -1, 0

    def admits(self, now: float) -> bool:
        """Whether the window has calls left."""
        number = int((now + self._phase) / self._window)
        if number != self._number:
            self._number, self._calls = number, 0
        self._calls += 1
        return self._calls <= self._limit


class SlidingWindowService(LimitedService):
    """Admits `limit` calls in any span of a window. The other options are those of `LimitedService`."""

    def __init__(self, limit: int, window: float = 1.0, **options: Any) -> None:
        super().__init__(**options)
        self._limit = limit
        self._window = window

    def admits(self, now: float) -> bool:
        """Whether the call is beyond the window of the one that was admitted `limit` calls ago."""
        latest = self.admitted[-self._limit :]
        return len(latest) < self._limit or latest[0] <= now - self._window + ROUNDING


class KneeService:
    """Has `servers` that take `seconds` for a call each, and answers 503 if more than `queue` calls wait.

    Attributes:
        latency: Seconds on the way, which take no server.
        answered, refused: The number of calls.
        running: Calls in the service now, waiting or served.
    """

    def __init__(self, servers: int, seconds: float, queue: float = inf, latency: float = 0.0) -> None:
        self.seconds = seconds
        self.latency = latency
        self.answered: list[float] = []
        self.refused = 0
        self.running = 0
        self.peak = 0
        self._servers = servers
        self._queue = queue
        self._free_at: deque[float] = deque([0.0] * servers)

    async def __call__(self, value: object) -> object:
        """Answer a call."""
        if self.running >= self._servers + self._queue:
            self.refused += 1
            await trio.sleep(self.latency + 0.001)
            raise StatusError(503)
        self.running += 1
        self.peak = max(self.peak, self.running)
        try:
            start = max(trio.current_time(), self._free_at.popleft())
            self._free_at.append(start + self.seconds)
            await trio.sleep_until(start + self.seconds + self.latency)
        finally:
            self.running -= 1
        self.answered.append(trio.current_time())
        return value
