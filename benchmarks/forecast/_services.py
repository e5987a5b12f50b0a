"""Services that a forecast is compared with. Each has an `open` like the model that `rehearse` fits to a sample."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from heapq import heapreplace
from math import inf
from random import Random
from typing import Any, TypeAlias

import trio

from trio_asyncio_io import ExponentialBackoff, FixedDelay, RetryStrategy
from trio_asyncio_io.gates import settle
from trio_asyncio_io.rehearsal import RecordedCall

__all__ = ["HELD_OUT", "SERVICES", "BusyError", "Planted", "function_of"]

Draw: TypeAlias = Callable[[Random], tuple[float, Exception | None]]
Answer: TypeAlias = tuple[float, RecordedCall]
Begin: TypeAlias = Callable[[float, float], Answer]


class BusyError(Exception):
    """A response with a status."""

    def __init__(self, status: int, retry_after: float | None = None) -> None:
        super().__init__(status)
        self.status = status
        self.retry_after = retry_after


@dataclass(frozen=True)
class Planted:
    """A service with known properties.

    Args:
        name: What it is.
        draw: Draws the time of a call, and its error.
        servers: How many calls it works on at once, in the order in which they arrive.
        rate: How many calls it admits per second. It refuses the others with a status 429.
        burst: How many calls its token bucket admits at once; None: those of a tenth of a second.
        window: With `rate`: seconds of a window; 0: a token bucket.
        slides: Whether the window slides.
        hint: With `rate`: the `Retry-After` of its refusals, in seconds.
        slows_at: The number of the call from which on calls take 50 % longer.
        retry: The retry strategy of its callers.
        is_expected: Whether the forecast is expected to be right.
    """

    name: str
    draw: Draw
    servers: int | None = None
    rate: float | None = None
    burst: float | None = None
    window: float = 0.0
    slides: bool = False
    hint: float | None = None
    slows_at: int | None = None
    retry: RetryStrategy | None = None
    is_expected: bool = True

    def open(self, random: Random) -> Begin:
        """Begin a run."""
        begin: Begin = lambda _, __: _answer(*self.draw(random))  # noqa: E731
        if self.servers is not None:
            begin = _limited(begin, self.servers)
        if self.rate is not None:
            refusal = _answer(0.004, BusyError(429, self.hint))
            burst = self.rate / 10 if self.burst is None else self.burst
            if not self.window:
                begin = _capped(begin, self.rate, burst, refusal)
            else:
                begin = (_sliding if self.slides else _windowed)(begin, self.rate, self.window, refusal)
        return begin if self.slows_at is None else _slowing(begin, self.slows_at)


def _answer(seconds: float, error: Exception | None) -> Answer:
    outcome: Any = "answered" if error is None else "refused" if isinstance(error, BusyError) else "failed"
    price = 0.5 + 1e4 * seconds % 1
    return seconds, RecordedCall(0.0, seconds, outcome, price, 1, 0, error, estimate=1.5)


def _limited(inner: Begin, servers: int) -> Begin:
    free = [0.0] * servers

    def begin(now: float, until: float) -> Answer:
        seconds, call = inner(now, until)
        end = max(now, free[0]) + seconds
        heapreplace(free, end)
        return end - now, call

    return begin


def _capped(inner: Begin, rate: float, burst: float, refusal: Answer) -> Begin:
    tokens, at = burst, 0.0

    def begin(now: float, until: float) -> Answer:
        nonlocal tokens, at
        tokens, at = min(burst, tokens + (now - at) * rate), now
        if tokens < 1:
            return refusal
        tokens -= 1
        return inner(now, until)

    return begin


def _windowed(inner: Begin, rate: float, seconds: float, refusal: Answer) -> Begin:
    window, admitted = 0, 0

    def begin(now: float, until: float) -> Answer:
        nonlocal window, admitted
        if now // seconds != window:
            window, admitted = int(now // seconds), 0
        if admitted >= rate * seconds:
            return refusal
        admitted += 1
        return inner(now, until)

    return begin


def _sliding(inner: Begin, rate: float, seconds: float, refusal: Answer) -> Begin:
    admitted = deque[float]()

    def begin(now: float, until: float) -> Answer:
        while admitted and admitted[0] <= now - seconds:
            admitted.popleft()
        if len(admitted) >= rate * seconds:
            return refusal
        admitted.append(now)
        return inner(now, until)

    return begin


def _slowing(inner: Begin, slows_at: int) -> Begin:
    calls = 0

    def begin(now: float, until: float) -> Answer:
        nonlocal calls
        calls += 1
        seconds, call = inner(now, until)
        return (1.5 * seconds if calls > slows_at else seconds), call

    return begin


def function_of(service: Planted, random: Random, *, settles: bool = False) -> Callable[[Any], Awaitable[Any]]:
    """A function that calls the service. With `settles`, each call settles the price that the service planned."""
    begin: Begin | None = None

    async def call(value: Any) -> Any:
        nonlocal begin
        if begin is None:
            begin = service.open(random)
        seconds, planned = begin(trio.current_time(), inf)
        await trio.sleep(seconds)
        if settles:
            settle(planned.weight)
        error = planned.error
        if error is not None:
            raise BusyError(error.status, error.retry_after) if isinstance(error, BusyError) else error
        return value

    return call


BROKEN = BusyError(500)
PATIENT = ExponentialBackoff(30, initial=0.1, maximum=5.0)
ONCE_MORE = FixedDelay(3, 0.2)


def _gamma(random: Random) -> tuple[float, None]:
    return random.gammavariate(3.0, 0.08 / 3), None


def _weibull(random: Random) -> tuple[float, None]:
    return random.weibullvariate(0.12, 1.3), None


def _failing(random: Random) -> tuple[float, Exception | None]:
    return (0.02, BROKEN) if random.random() < 0.08 else _gamma(random)


def _cached(random: Random) -> tuple[float, None]:
    return (random.gammavariate(4.0, 0.002) if random.random() < 0.6 else random.gammavariate(4.0, 0.03)), None


def _straggling(random: Random) -> tuple[float, None]:
    return (random.uniform(0.8, 1.0), None) if random.random() < 0.02 else (random.gammavariate(5.0, 0.005), None)


def _heavy(random: Random) -> tuple[float, None]:
    return 0.03 * random.paretovariate(1.3), None


SERVICES = (
    Planted("gamma", _gamma),
    Planted("Weibull", _weibull),
    Planted("a cache before a service", _cached),
    Planted("8 % failures, retried", _failing, retry=ONCE_MORE),
    Planted("35 servers", _gamma, servers=35),
    Planted("80 servers", _weibull, servers=80),
    Planted("120 calls per second", _gamma, rate=120.0, retry=PATIENT),
    Planted("500 calls per second", _gamma, rate=500.0, retry=PATIENT),
    Planted("100 calls in each second (window)", _gamma, rate=100.0, window=1.0, retry=PATIENT, is_expected=False),
    Planted("2 % stragglers", _straggling, is_expected=False),
    Planted("heavy tail (Pareto, 1.3)", _heavy, is_expected=False),
    Planted("50 % slower after 2,000 calls", _gamma, slows_at=2_000, is_expected=False),
)


def _of(draw: Callable[[Random], float], failing: float = 0.0, hanging: float = 0.0) -> Draw:
    """Draws times, and of the calls, shares that fail and that hang."""

    def planned(random: Random) -> tuple[float, Exception | None]:
        seconds, luck = draw(random), random.random()
        return (1e6 if luck < hanging else seconds), BROKEN if hanging <= luck < hanging + failing else None

    return planned


_brief = _of(lambda random: 0.015 + random.weibullvariate(0.05, 1.4))
_long = _of(lambda random: 0.1 + random.gammavariate(2, 0.15))
_level = _of(lambda random: 0.04 + 0.3 * random.betavariate(2, 3))
_split = _of(lambda random: random.uniform(0.03, 0.07) if random.random() < 0.75 else random.lognormvariate(-1.2, 0.3))


def _refusing(random: Random) -> tuple[float, Exception | None]:
    return (0.006, BusyError(429)) if random.random() < 0.02 else _brief(random)


# Services that were written down after the model, and that nothing was fitted to
HELD_OUT = (
    Planted("short, with a minimum", _brief),
    Planted("gamma, long", _long),
    Planted("beta, with limits", _level),
    Planted("a cache before a database", _split),
    Planted("5 % failures, retried", _of(lambda random: random.lognormvariate(-2, 0.4), 0.05), retry=ONCE_MORE),
    Planted("18 % failures, retried", _of(lambda random: random.triangular(0.03, 0.12), 0.18), retry=ONCE_MORE),
    Planted("28 servers", _split, servers=28),
    Planted("70 servers", _long, servers=70),
    Planted("45 servers, 5 % failures", _of(lambda random: random.gammavariate(2.5, 0.06), 0.05), 45, retry=ONCE_MORE),
    Planted("bucket 55/s of 15, no hint", _brief, rate=55.0, burst=15.0, retry=PATIENT),
    Planted("bucket 310/s of 10, hint 0.2", _level, rate=310.0, burst=10.0, hint=0.2, retry=PATIENT),
    Planted("bucket 110/s of 40, hint 0.8", _long, rate=110.0, burst=40.0, hint=0.8, retry=PATIENT),
    Planted("bucket 180/s of 1, hint 2", _brief, rate=180.0, burst=1.0, hint=2.0, retry=PATIENT),
    Planted("bucket 95/s of 5, hint 4", _split, rate=95.0, burst=5.0, hint=4.0, retry=PATIENT),
    Planted("bucket 40/s of 3, hint 10", _level, rate=40.0, burst=3.0, hint=10.0, retry=PATIENT),
    Planted("bucket 70/s of 100, hint 3", _split, rate=70.0, burst=100.0, hint=3.0, retry=PATIENT, is_expected=False),
    Planted("bucket 150/s of 200, hint 2", _brief, rate=150.0, burst=200.0, hint=2.0, retry=PATIENT, is_expected=False),
    Planted("window of 40 in 0.5 s, hint 0.5", _level, rate=80.0, window=0.5, hint=0.5, retry=PATIENT),
    Planted("window of 55 in 0.9 s, hint 2", _brief, rate=55 / 0.9, window=0.9, hint=2.0, retry=PATIENT),
    Planted("window of 100 in 1.6 s, hint 5", _split, rate=62.5, window=1.6, hint=5.0, retry=PATIENT),
    Planted("sliding 20 in 0.25 s, hint 0.3", _split, rate=80.0, window=0.25, slides=True, hint=0.3, retry=PATIENT),
    Planted("sliding 50 in 1 s, hint 1", _long, rate=50.0, window=1.0, slides=True, hint=1.0, retry=PATIENT),
    Planted("sliding 35 in 0.6 s, hint 6", _level, rate=35 / 0.6, window=0.6, slides=True, hint=6.0, retry=PATIENT),
    Planted("2 % refused at random", _refusing, retry=PATIENT),
    Planted("50 % slower after 1,800 calls", _level, slows_at=1_800, is_expected=False),
    Planted("heavy tail (Pareto, 1.4)", _of(lambda random: 0.05 * random.paretovariate(1.4)), is_expected=False),
)
