"""Simulated services, on Trio's clock."""

from __future__ import annotations

from collections import deque
from math import inf

import trio

__all__ = ["KneeService", "RateCappedService", "StatusError", "StormService"]


class StatusError(Exception):
    """An error response."""

    def __init__(self, status: int, retry_after: float | None = None) -> None:
        super().__init__(status)
        self.status = status
        if retry_after is not None:
            self.retry_after = retry_after


class RateCappedService:
    """Admits `rate` calls per second, and answers all others with 429.

    Args:
        rate: Calls per second. May be changed.
        latency: Seconds of an admitted call. A refused one takes a tenth.
        retry_after: The `Retry-After` of a refusal in seconds, or None.

    Attributes:
        admitted, refused: The instants of the calls.
    """

    def __init__(self, rate: float, latency: float = 0.05, retry_after: float | None = None) -> None:
        self.rate = rate
        self.latency = latency
        self.retry_after = retry_after
        self.admitted: list[float] = []
        self.refused: list[float] = []
        self._tokens = rate * 0.1
        self._at = 0.0

    async def __call__(self, value: object) -> object:
        """Answer a call."""
        now = trio.current_time()
        self._tokens = min(self.rate * 0.1, self._tokens + (now - self._at) * self.rate)
        self._at = now
        if self._tokens < 1:
            self.refused.append(now)
            await trio.sleep(self.latency / 10)
            raise StatusError(429, self.retry_after)
        self._tokens -= 1
        self.admitted.append(now)
        await trio.sleep(self.latency)
        return value


class StormService(RateCappedService):
    """Answers calls above its rate with `status`, and refuses connections while `is_down`.

    Attributes:
        failed: The instants of the calls while it was down.
    """

    def __init__(self, rate: float, status: int) -> None:
        super().__init__(rate)
        self.is_down = False
        self.failed: list[float] = []
        self._status = status

    async def __call__(self, value: object) -> object:
        """Answer a call."""
        if self.is_down:
            self.failed.append(trio.current_time())
            await trio.sleep(self.latency / 10)
            raise ConnectionRefusedError
        try:
            return await super().__call__(value)
        except StatusError:
            raise StatusError(self._status) from None


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
