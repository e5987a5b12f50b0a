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
    return seconds, RecordedCall(0.0, seconds, outcome, price, 1, error, estimate=1.5)


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


_sudden = _of(lambda random: 0.02 + random.gammavariate(1.5, 0.03))
_long = _of(lambda random: 0.2 + random.weibullvariate(0.25, 1.8))
_even = _of(lambda random: random.triangular(0.05, 0.25, 0.1))
_pages = _of(lambda random: 0.015 + sum(random.gammavariate(2.0, 0.015) for _ in range(random.choice((1, 2, 3)))))
_unreliable = _of(lambda random: 0.1 + random.weibullvariate(0.2, 2.0), 0.1)


def _refusing(random: Random) -> tuple[float, Exception | None]:
    return (0.003, BusyError(429)) if random.random() < 0.03 else _even(random)


def _bucket(rate: float, burst: float, hint: float | None, draw: Draw, *, is_expected: bool = True) -> Planted:
    name = f"bucket {rate:g}/s of {burst:g}, {'no hint' if hint is None else f'hint {hint:g}'}"
    return Planted(name, draw, rate=rate, burst=burst, hint=hint, retry=PATIENT, is_expected=is_expected)


def _window(calls: int, seconds: float, hint: float, draw: Draw, *, slides: bool = False) -> Planted:
    name = f"{'sliding' if slides else 'window of'} {calls} in {seconds:g} s, hint {hint:g}"
    return Planted(name, draw, rate=calls / seconds, window=seconds, slides=slides, hint=hint, retry=PATIENT)


# Services that were written down after the model, and that nothing was fitted to
HELD_OUT = (
    Planted("gamma, with a minimum", _sudden),
    Planted("Weibull, long", _long),
    Planted("triangular", _even),
    Planted("one to three queries", _pages),
    Planted("7 % failures, retried", _of(lambda random: random.lognormvariate(-2.4, 0.45), 0.07), retry=ONCE_MORE),
    Planted("30 % failures, retried", _of(lambda random: 0.03 + random.expovariate(40.0), 0.3), retry=ONCE_MORE),
    Planted("18 servers", _even, servers=18),
    Planted("55 servers", _sudden, servers=55),
    Planted("100 servers, 10 % failures", _unreliable, servers=100, retry=ONCE_MORE),
    _bucket(75.0, 8.0, None, _even),
    _bucket(240.0, 30.0, 0.2, _pages),
    _bucket(130.0, 1.0, 0.5, _sudden),
    _bucket(150.0, 20.0, 1.5, _even),
    _bucket(60.0, 2.0, 3.0, _pages),
    _bucket(85.0, 12.0, 7.0, _sudden),
    _bucket(30.0, 4.0, 10.0, _long),
    _bucket(50.0, 120.0, 4.0, _even, is_expected=False),
    _bucket(200.0, 200.0, 1.0, _sudden, is_expected=False),
    _window(30, 0.3, 0.4, _even),
    _window(80, 1.2, 2.5, _sudden),
    _window(64, 0.8, 6.0, _pages),
    _window(12, 0.2, 0.2, _sudden, slides=True),
    _window(45, 0.7, 1.5, _long, slides=True),
    _window(70, 1.4, 5.0, _even, slides=True),
    Planted("3 % refused at random", _refusing, retry=PATIENT),
    Planted("50 % slower after 2,500 calls", _pages, slows_at=2_500, is_expected=False),
    Planted("heavy tail (Pareto, 1.35)", _of(lambda random: 0.04 * random.paretovariate(1.35)), is_expected=False),
)
