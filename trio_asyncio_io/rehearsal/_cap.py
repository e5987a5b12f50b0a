"""The rates at which a service may admit calls, according to the calls that a sample saw admitted and refused.

A kind of limit has a *level* for each call, which follows from the calls that were admitted before it. It admits a call
if the level is within the limit. So it explains a sample if a threshold separates the levels of the admitted calls from
those of the refused ones. These kinds are tried, each with all rates or lengths of a window on a fine scale, for the
first calls; and those that may explain the first calls are tried for more of them:

* a token bucket: the tokens that are missing from a full one;
* a sliding window: the calls admitted in the last seconds;
* a fixed window, which begins at multiples of its length or with the first call after the last one: those admitted
  since its beginning.

Each limit that explains the sample may be the service's own, so the result has all of them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import inf, sqrt
from random import Random
from typing import Literal, Self, TypeAlias

from ._sample import RecordedCall

# All limits are tried on this number of calls, and those that explain these calls on a larger number
FIRST_CALLS, MOST_CALLS = 400, 1_600
# Factors between neighbours on the scales of rates and windows: on the first scale, around its best values, and around
# the best values of these. If a limit admits n calls in a row, a rate with an error of 1 / n misplaces one of them
STEP, FINE_STEP, FINEST_STEP = 1.06, 1.006, 1.0006
FINE = 3  # the number of best values
LIKELY = 1.3  # upper limit of the rate of a bucket that was rarely full, over the rate of its admitted calls
SHORTEST, LONGEST = 0.05, 4  # windows, in seconds and in lengths of the sample
TENTHS = 30  # fixed windows of this many tenths of a second, and of whole seconds above it, are tried exactly
SLACK = 2.0  # a limit may leave this many standard deviations more calls unexplained than the best limit
# The share of the refused calls that the best limit may leave unexplained. Admitted calls prove nothing
EXPLAINED = 0.15
# The search goes on with a limit that leaves at most this share of all calls more unexplained than the best limit
ALMOST = 0.05
ROUNDING = 1e-6

Kind: TypeAlias = Literal["bucket", "sliding", "fixed", "called"]  # called: windows that begin with a call


@dataclass(frozen=True, slots=True, order=True)
class Cap:
    """A limit. The length of a window, in seconds, is `burst / rate`.

    Args:
        rate: Calls per second, above 0.
        burst: Calls at once, at least 1; inf: a bucket that is never empty.
        kind: How the service counts.
    """

    rate: float
    burst: float
    kind: Kind = "bucket"

    def open(self, random: Random) -> Callable[[float], bool]:
        """Begin a run. The result tells whether a call that starts now is admitted."""
        counter = self._counter(random)

        def admits(now: float) -> bool:
            is_admitted = counter.level(now) <= self.burst
            if is_admitted:
                counter.admit(now)
            return is_admitted

        return admits

    def _counter(self, random: Random) -> Level:
        if self.kind == "bucket" or self.burst == inf:
            return _Bucket(self.rate)
        seconds = self.burst / self.rate
        if self.kind == "sliding":
            return _Sliding(seconds)
        return _Windows(seconds, None if self.kind == "called" else random.uniform(0, seconds))


# What a limit counts. A call that starts now is admitted if its `level` is at most `Cap.burst`; then call `admit`


class _Bucket:
    """The tokens that are missing from the bucket, with the next call."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._missing = self._at = 0.0

    def level(self, now: float) -> float:
        self._missing = max(0.0, self._missing - (now - self._at) * self._rate)
        self._at = now
        return self._missing + 1

    def admit(self, _: float) -> None:
        self._missing += 1


class _Sliding:
    """The calls of the last seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._admitted = deque[float]()

    def level(self, now: float) -> float:
        while self._admitted and self._admitted[0] <= now - self._seconds + ROUNDING:
            self._admitted.popleft()
        return len(self._admitted) + 1.0

    def admit(self, now: float) -> None:
        self._admitted.append(now)


class _Windows:
    """The calls of the present window, which began with a call, or at a multiple of its length after `begin`."""

    def __init__(self, seconds: float, begin: float | None = None) -> None:
        self._seconds, self._begin = seconds, begin
        self._number, self._end = 0.0, -inf

    def level(self, now: float) -> float:
        if now >= self._end - ROUNDING:
            passed = 0.0 if self._begin is None else (now - self._begin + ROUNDING) % self._seconds
            self._number, self._end = 0.0, now + self._seconds - passed
        return self._number + 1

    def admit(self, _: float) -> None:
        self._number += 1


Level: TypeAlias = _Bucket | _Sliding | _Windows


def caps_of(calls: Sequence[RecordedCall], lowest: float, highest: float) -> list[Cap]:
    """The limits that explain which calls were refused, by rate. Empty: no limit on the rate explains them.

    Args:
        calls: In the order in which they started. Some were refused.
        lowest, highest: The rates to look between.
    """
    first_refused = next(number for number, call in enumerate(calls) if call.outcome == "refused")
    first = _Seen.of(calls[: max(FIRST_CALLS, first_refused + FIRST_CALLS // 2)])
    more = _Seen.of(calls[: max(MOST_CALLS, len(first.starts))])
    longest = min(len(first.starts) / lowest, LONGEST * (first.starts[-1] - first.starts[0]))
    fits: list[Fit] = [
        _bucket,
        partial(_window, "sliding"),
        partial(_window, "called"),
        partial(_window, "fixed"),
    ]
    rates = [*_scale(lowest, highest, STEP), *first.likely_rates()]
    lengths = list(_scale(SHORTEST, longest, STEP))
    numbers = [rates, lengths, lengths, [*lengths, *_round(longest)]]  # to try in each of these fits
    found, fewest = list[Candidate](), inf
    for seen in (first, more):
        almost, refused = ALMOST * len(seen.starts), len(seen.admitted) - sum(seen.admitted)
        tried = [_searched(partial(fit, seen), each) for fit, each in zip(fits, numbers, strict=True)]
        found = [candidate for each in tried for candidates in each.values() for candidate in candidates]
        fewest = min((errors for errors, _ in found), default=inf)
        if fewest > EXPLAINED * refused:
            return []
        numbers = [
            [number for number, candidates in each.items() if min(candidates)[0] <= fewest + almost] for each in tried
        ]
    most = fewest + SLACK * sqrt(fewest)
    caps = {cap for errors, cap in found if errors <= most and lowest <= cap.rate <= highest}
    return sorted({cap for cap in caps if cap.burst.is_integer()} or caps)


@dataclass(frozen=True, slots=True)
class _Seen:
    """The starts and outcomes of the calls of a sample.

    Attributes:
        starts: The start of each call, in order.
        admitted: Whether each call was admitted.
        near: Ranges of calls that may have reached the service in any order, each with the numbers of admitted and of
            refused calls at its center.
    """

    starts: Sequence[float]
    admitted: Sequence[bool]
    near: Sequence[tuple[slice, int, int]]

    @classmethod
    def of(cls, calls: Sequence[RecordedCall]) -> Self:
        """The starts and outcomes of these calls. Refusals show how much the time to reach the service varies."""
        refusals = sorted(call.seconds for call in calls if call.outcome == "refused")
        blur = ROUNDING + refusals[9 * len(refusals) // 10] - refusals[len(refusals) // 10]
        starts = [call.start for call in calls]
        admitted = [call.outcome != "refused" for call in calls]
        ends = [(bisect_left(starts, now - blur), bisect_right(starts, now + blur)) for now in starts]
        counts = Counter(zip(ends, admitted, strict=True))
        near = [(slice(*each), counts[each, True], counts[each, False]) for each in dict.fromkeys(ends)]
        return cls(starts, admitted, near)

    def begin(self, seconds: float) -> float:
        """The beginning of fixed windows of a length that fits most steps from a refused to an admitted call."""
        calls = zip(self.starts, self.admitted, strict=True)
        steps = ((before, now) for (before, was), (now, is_in) in pairwise(calls) if is_in and not was)
        changes: list[tuple[float, int]] = []
        for before, now in steps:
            low, high = before % seconds, now % seconds
            if now - before < seconds:
                changes.extend([(low, 1), (high, -1)] if low < high else [(0.0, 1), (high, -1), (low, 1)])
        changes.sort()
        most = agree = 0
        begin = 0.0
        for (low, change), (high, _) in pairwise([*changes, (seconds, 0)]):
            agree += change
            if agree > most:
                most, begin = agree, (low + high) / 2
        return begin

    def likely_rates(self) -> Iterator[float]:
        """Rates near that of the admitted calls while some were refused: a token bucket that was rarely full."""
        refused = [now for now, is_admitted in zip(self.starts, self.admitted, strict=True) if not is_admitted]
        began, ended = refused[0], refused[-1]
        if began < ended:
            calls = zip(self.starts, self.admitted, strict=True)
            rate = sum(began < now <= ended for now, is_admitted in calls if is_admitted) / (ended - began)
            yield from _scale(rate / STEP, rate * LIKELY, FINE_STEP)

    def levels(self, counter: Level) -> list[float]:
        """The level of each call."""
        levels = []
        for now, is_admitted in zip(self.starts, self.admitted, strict=True):
            levels.append(counter.level(now))
            if is_admitted:
                counter.admit(now)
        return levels

    def ordered(self, levels: Sequence[float]) -> list[tuple[float, int]]:
        """The levels in ascending order, each with the number of refused calls, or of admitted calls times -1.

        A call has the level that explains it best among the calls near it.
        """
        lowest = [(min(levels[near]), -admitted) for near, admitted, _ in self.near if admitted]
        highest = [(max(levels[near]), refused) for near, _, refused in self.near if refused]
        return sorted(lowest + highest)

    def errors(self, order: Sequence[tuple[float, int]], threshold: float) -> int:
        """The number of calls on the wrong side of this threshold."""
        within = bisect_right(order, (threshold + ROUNDING, inf))
        return sum(self.admitted) + sum(change for _, change in order[:within])

    def threshold(self, order: Sequence[tuple[float, int]]) -> tuple[int, float, float]:
        """The best threshold between admitted and refused calls: the number on its wrong side, and its bounds."""
        errors = best = sum(self.admitted)  # a threshold below all levels admits none
        low, high = 0.0, order[0][0]
        for (level, change), (following, _) in pairwise([*order, (inf, 0)]):
            errors += change
            if following - level > ROUNDING and errors < best:
                best, low, high = errors, level, following
        return best, low, high


Candidate: TypeAlias = tuple[int, Cap]  # the number of calls that a limit does not explain, and the limit
Fit: TypeAlias = Callable[[_Seen, float], list[Candidate]]  # with a rate, or the length of a window


def _searched(fit: Callable[[float], list[Candidate]], numbers: Iterable[float]) -> dict[float, list[Candidate]]:
    """The candidates for each of these numbers, and on finer scales around the best ones."""
    tried = {number: fit(number) for number in numbers}
    for step, finer in ((STEP, FINE_STEP), (FINE_STEP, FINEST_STEP)):
        best = sorted(tried, key=lambda number: min(tried[number])[0])[:FINE]
        tried |= {each: fit(each) for number in best for each in _scale(number / step, number * step, finer)}
    return tried


def _scale(low: float, high: float, step: float) -> Iterator[float]:
    while low < high * step:
        yield low
        low *= step


def _round(longest: float) -> Iterator[float]:
    """Round lengths of windows: tenths of a second, then seconds."""
    tenths = 1
    while tenths / 10 <= longest:
        yield tenths / 10
        tenths += 1 if tenths < TENTHS else 10


def _bucket(seen: _Seen, rate: float) -> list[Candidate]:
    order = seen.ordered(seen.levels(_Bucket(rate)))
    errors, low, high = seen.threshold(order)
    burst = max(1.0, low if high == inf else (low + high) / 2)
    whole = float(round(burst))
    return [(errors, Cap(rate, burst)), (seen.errors(order, whole), Cap(rate, whole))]


def _window(kind: Kind, seen: _Seen, seconds: float) -> list[Candidate]:
    begin = seen.begin(seconds) if kind == "fixed" else None
    counter = _Sliding(seconds) if kind == "sliding" else _Windows(seconds, begin)
    errors, low, high = seen.threshold(seen.ordered(seen.levels(counter)))
    most = low if high == inf else max(low, high - 1)
    return [(errors, Cap(number / seconds, max(1.0, number), kind)) for number in {low, most}]
