"""Simulated services, on Trio's clock."""

from __future__ import annotations

from abc import ABC, abstractmethod
from random import uniform

import trio

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
