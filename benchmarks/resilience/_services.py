"""Simulated services, on Trio's clock: one with a rate, and one with any of the usual limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from math import inf, log
from random import Random

import trio

ROUNDING = 1e-9
LATENCY = 0.05  # of a service with a rate, in seconds
BURST_SECONDS = 0.1  # of the rate, in its bucket

Latency = Callable[[Random], float]


class StatusError(Exception):
    """An error response."""

    def __init__(self, status: int, retry_after: float | None = None) -> None:
        super().__init__(status)
        self.status = status
        if retry_after is not None:
            self.retry_after = retry_after


class RateCappedService:
    """Admits `rate` calls per second, by a token bucket that holds those of a tenth of a second.

    A call takes 50 ms. The other calls are answered with 429, in a tenth of that.

    Args:
        rate: Calls per second. May be changed.

    Attributes:
        admitted, refused: The instants of the calls.
    """

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.admitted: list[float] = []
        self.refused: list[float] = []
        self._tokens = BURST_SECONDS * rate
        self._at = 0.0

    async def __call__(self, value: object) -> object:
        """Answer a call."""
        now = trio.current_time()
        if not self._takes_token(now):
            self.refused.append(now)
            await trio.sleep(LATENCY / 10)
            raise StatusError(429)
        self.admitted.append(now)
        await trio.sleep(LATENCY)
        return value

    def _takes_token(self, now: float) -> bool:
        self._tokens = min(BURST_SECONDS * self.rate, self._tokens + (now - self._at) * self.rate)
        self._at = now
        if self._tokens < 1 - ROUNDING:
            return False
        self._tokens -= 1
        return True


# Any of the usual limits


def fixed(seconds: float) -> Latency:
    """Always the same."""
    return lambda random: seconds


def exponential(mean: float) -> Latency:
    """Without memory."""
    return lambda random: random.expovariate(1 / mean)


def gamma(mean: float) -> Latency:
    """The sum of four exponential ones."""
    return lambda random: random.gammavariate(4.0, mean / 4.0)


def lognormal(mean: float) -> Latency:
    """A lognormal latency with this mean. The standard deviation of its logarithm is 1."""
    return lambda random: random.lognormvariate(log(mean) - 0.5, 1.0)


def bimodal(share: float, short: float, long: float) -> Latency:
    """Short, but this share is long."""
    return lambda random: long if random.random() < share else short


def with_tail(mean: float, share: float, factor: float) -> Latency:
    """Exponential, but this share takes a multiple of it."""
    return lambda random: random.expovariate(1 / mean) * (factor if random.random() < share else 1.0)


@dataclass(frozen=True)
class Settings:
    """A service.

    Attributes:
        latency: Of an admitted call.
        refusal: Seconds that a refusal takes.
        rate, burst: Calls a second that a bucket of this size admits; others are answered with 429.
        hint: The `Retry-After` of a 429 in seconds, or None.
        window: Calls that are admitted in each second of the clock; others are answered with 429.
        at_once: Calls beyond them are refused.
        servers, line: The calls that are served, and those that may wait; others are refused.
        status: Of these refusals.
        thrashes: Calls beyond them slow down all: at twice the number, a call takes three times as long.
        failing: The share of calls that fail with 503.
        down: (start, end) of the outages.
    """

    latency: Latency
    refusal: float = 0.02
    rate: float = inf
    burst: float = inf
    hint: float | None = None
    window: float = inf
    at_once: float = inf
    servers: int | None = None
    line: float = inf
    status: int = 503
    thrashes: float = inf
    failing: float = 0.0
    down: tuple[tuple[float, float], ...] = ()


class AnyService:
    """The service, with its own random numbers.

    Attributes:
        refused: The number of calls that were refused.
    """

    def __init__(self, settings: Settings, seed: int) -> None:
        self.refused = 0
        self._settings = settings
        self._random = Random(seed)
        self._tokens, self._at = settings.burst, 0.0
        self._second, self._calls = -1, 0
        self._running = 0
        self._free = [0.0] * (settings.servers or 0)
        heapify(self._free)

    async def __call__(self, value: object) -> object:
        """Answer a call."""
        now = trio.current_time()
        status = self._status(now)
        if status:
            self.refused += 1
            await trio.sleep(self._settings.refusal)
            raise StatusError(status, self._settings.hint if status == 429 else None)
        end = self._end(now)
        self._running += 1
        try:
            await trio.sleep_until(end)
        finally:
            self._running -= 1
        return value

    def _end(self, now: float) -> float:
        seconds = self._settings.latency(self._random)
        seconds *= 1 + 2 * max(0.0, self._running / self._settings.thrashes - 1)
        if not self._free:
            return now + seconds
        end = max(now, heappop(self._free)) + seconds
        heappush(self._free, end)
        return end

    def _status(self, now: float) -> int:
        """503, 429, or 0 for a call that is admitted."""
        settings = self._settings
        if any(begin <= now < end for begin, end in settings.down) or self._random.random() < settings.failing:
            return 503
        if self._running >= min(settings.at_once, (settings.servers or inf) + settings.line):
            return settings.status
        return 0 if self._takes_token(now) and self._is_in_window(now) else 429

    def _is_in_window(self, now: float) -> bool:
        if self._second != int(now):
            self._second, self._calls = int(now), 0
        self._calls += 1
        return self._calls <= self._settings.window

    def _takes_token(self, now: float) -> bool:
        if self._settings.rate == inf:
            return True
        self._tokens = min(self._settings.burst, self._tokens + (now - self._at) * self._settings.rate)
        self._at = now
        if self._tokens < 1 - ROUNDING:
            return False
        self._tokens -= 1
        return True
