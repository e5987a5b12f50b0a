"""What the limit may be: the start, a rate, a number or a plateau."""

from __future__ import annotations

from math import cbrt, ceil, inf, log2
from typing import Literal, TypeAlias

from ..._values.describe import amount
from ._calls import Latency
from ._constants import (
    BEYOND,
    CALLS_HELD,
    CALLS_PER_DOUBLING,
    CALLS_TESTED,
    CALM,
    CLEAN_GENERATIONS,
    CUT,
    DOUBLING,
    EVENT,
    FASTEST,
    FIRST_CALLS,
    FIRST_PROBE,
    FIRST_WAIT,
    GAIN,
    GROWS,
    GROWTH,
    HEADROOM,
    LAST_PROBE,
    LAST_WAIT,
    LATE,
    LEAST_CALLS,
    LEAST_CUT,
    MOST_SECONDS,
    SLOWER,
    SLOWEST,
    USED,
)

__all__ = ["Number", "Pace", "Plateau", "Ramp"]


Phase: TypeAlias = Literal["growing", "holding", "testing"]


class Ramp:
    """The start: the limit doubles by time."""

    def __init__(self, now: float, start: float, top: float) -> None:
        self.since, self.start, self.top = now, start, top

    def limit(self, now: float) -> float:
        return min(self.top, self.start * 2 ** min(20.0, (now - self.since) / DOUBLING))

    def wait(self, running: int, now: float) -> float:
        """The seconds until one call more may run."""
        doublings = log2(max(self.start, running + 1) / self.start)
        return max(1e-6, self.since + DOUBLING * doublings - now)


class Pace:
    """The pace of starts: a cubic around w, the rate at which calls were last refused.

    Attributes:
        w: Calls a second.
        is_searching: Whether w is only a first guess: the pace doubles until the next refusal.
        longest_pause: The longest `Retry-After`.
        calm: Seconds from a cut until the pace is back at w, at least: each look at the limit costs a pause.
    """

    def __init__(self) -> None:
        self.w = 1.0
        self.is_searching = True
        self.grows_from = self.next_start = -inf
        self.longest_pause = self.calm = 0.0

    def begin(self, now: float, w: float) -> None:
        self.w, self.is_searching = max(SLOWEST, w), True
        self.grows_from = self.next_start = now

    def rate(self, now: float) -> float:
        seconds = max(0.0, now - self.grows_from)
        if self.is_searching:
            doubling = max(EVENT, CALLS_PER_DOUBLING / self.w, self.longest_pause / 5)
            return _within(self.w * 2.0 ** min(30.0, seconds / doubling))
        back = max(cbrt((1 - CUT) * self.w / GROWTH), min(LEAST_CALLS / self.w, MOST_SECONDS), self.calm)
        cubic = 1 + (1 - CUT) * (seconds / back - 1) ** 3
        beyond = (seconds - BEYOND * back) / max(1.0, CALLS_PER_DOUBLING / self.w)
        return _within(self.w * max(cubic, 2 ** min(30.0, beyond) if beyond > 0 else 0.0))

    def start(self, now: float) -> None:
        """A call starts, and delays the next one."""
        rate = self.rate(now)
        if now > self.next_start + LATE + 1 / rate and now > self.grows_from:  # the pace was not tested
            self.grows_from += now - max(self.next_start, self.grows_from)
        self.next_start = max(self.next_start, now - LATE) + 1 / rate

    def cut(self, now: float, resumes: float, w: float, *, hinted: bool) -> None:
        """Calls were refused at the present pace. Starts resume at an instant that is not before now."""
        rate = self.rate(now)
        if not self.is_searching:
            w = max(w, LEAST_CUT * self.w)
        self.w, self.is_searching = max(SLOWEST, min(w, rate)), False
        self.grows_from = resumes - (self.calm if hinted else 0.0)
        self.next_start = min(self.next_start, now + max(0.2, 0.3 / self.w))

    def calm_down(self) -> None:
        self.calm = min(max(2 * self.calm, self.longest_pause), CALM * self.longest_pause)


class Number:
    """A number of calls at once that was refused, and what the calls above it show.

    Attributes:
        known: The number: a call of this rank was refused.
        strikes: Refusals below it.
        refutations: How often it was not a number.
        times: How often calls of this rank were refused.
        kind: The kind of the refusal.
        probe_at: The answers after which one more call tests it.
        before: The limit before the refusal.
    """

    def __init__(self) -> None:
        self.known = 1
        self.strikes = self.refutations = 0
        self.times = 0
        self.kind = ""
        self.probe_at = 0
        self.before = 1.0
        self._wait = FIRST_PROBE

    def begin(self, rank: int, kind: str, limit: float, answers: int) -> None:
        """A call of this rank was refused, while there was no number."""
        if limit > 1.5 * self.known:
            self._wait = FIRST_PROBE
        else:
            self.probe_less()
        self.before, self.strikes = limit, 0
        self.times = 0
        self.set(rank, kind, answers)

    def set(self, rank: int, kind: str, answers: int) -> None:
        """Calls of this rank are refused."""
        self.times += 1
        self.known, self.kind = max(1, rank), kind
        self.probe_at = answers + self._wait

    def wait_again(self, answers: int) -> None:
        self.probe_at = answers + self._wait

    def probe_less(self) -> None:
        self._wait = min(LAST_PROBE, 2 * self._wait)

    def refute(self) -> None:
        self.refutations += 1
        self._wait = max(FIRST_PROBE, self._wait // 4)


class Plateau:
    """Finds the number of calls at once above which the throughput does not grow.

    Attributes:
        limit: Calls at once.
        running: Calls that run now.
        peak: The highest number of them in this window.
        most_gain: Calls that an answer adds, at most.
    """

    def __init__(self, limit: float, most: int) -> None:
        self.limit, self.most = limit, most
        self.running = self.peak = 0
        self.latency = Latency()
        self.phase: Phase = "growing"
        self.gain = self.most_gain = GAIN
        self.is_first = True
        self.cause = ""
        self._before: float | None = None  # the throughput of the window before
        self._wait = self._left = FIRST_WAIT
        self._from: float | None = None  # the limit before a test
        self._goal = limit
        self._skip = 0
        self.open(0.0)
        self._total = (0, 0.0)  # answers and seconds of all windows at this limit

    def open(self, now: float) -> None:
        """A window begins."""
        self._since, self._answers, self._limit_before = now, 0, self.limit
        self.peak = self.running

    def hold(self, now: float) -> None:
        """The limit stays for some generations."""
        self.is_first, self._total = False, (0, 0.0)
        self.phase, self._left, self._from = "holding", self._wait, None
        self.open(now)

    def grow(self, now: float, gain: float = GAIN) -> None:
        self.phase, self._before, self.gain = "growing", None, gain
        self.open(now)

    def answered(self, now: float, running: int) -> bool:
        """Measure an answer, and return whether a plateau was found."""
        if self.phase == "testing":
            self.limit = min(self._goal, max(self.limit, min(self._goal, self.limit + 1)))
        if self._skip > 0:
            self._skip -= 1
            self.open(now)
            return False
        self._answers += 1
        if self.phase == "growing":
            return self._grow(now, running)
        if self.phase == "holding":
            self._hold(now)
        elif self._answers >= _whole(self.limit, CALLS_TESTED):
            self._judge(now)
        return False

    @property
    def _is_used(self) -> bool:
        return self.peak >= USED * self._limit_before

    def _throughput(self, now: float) -> float:
        return self._answers / max(1e-9, now - self._since)

    def _grow(self, now: float, running: int) -> bool:
        if self._is_used:
            self.limit = min(self.most, self.limit + min(self.gain, self.most_gain))
        if self._is_slow and self._answers >= FIRST_CALLS // 2 and now > self._since:
            return self._found(now, self._throughput(now), self.latency.first or inf, running)
        if self._answers < max(FIRST_CALLS, self._limit_before):
            return False
        throughput = self._throughput(now)
        if not self._is_used:
            self._before = None
        elif self._before is not None and throughput < GROWS * self._before and self._has_grown:
            before = self._limit_before / (1 + GAIN) / self._before  # the latency, by Little's law
            return self._found(now, throughput, min(self.latency.first or inf, before), running)
        elif self.limit >= self.most:
            self.cause = f"{self.most:,} calls at once, the maximum: the throughput still grew"
            self.hold(now)
            return False
        else:
            self._before = throughput
        self.gain = min(GAIN, self.gain * 2 ** (1 / CLEAN_GENERATIONS))
        self.open(now)
        return False

    @property
    def _is_slow(self) -> bool:
        return (self.is_first or self.limit < self.most) and self.latency.is_above(
            SLOWER if self.is_first else HEADROOM * SLOWER
        )

    @property
    def _has_grown(self) -> bool:
        return self._limit_before * (1 + GAIN) <= self.limit + 1 + GAIN

    def _found(self, now: float, throughput: float, latency: float, running: int) -> bool:
        if self._from is None:
            self.limit = max(1.0, min(self.limit, HEADROOM * throughput * latency))
        else:
            self._wait, self.limit = min(LAST_WAIT, 2 * self._wait), self._from
        self.cause = f"{int(self.limit):,} calls at once: more only wait, {amount(throughput)} a second are answered"
        self._skip = max(int(self.limit), running)
        self.hold(now)
        return True

    def _hold(self, now: float) -> None:
        if self._answers < _whole(self.limit, CALLS_HELD):
            return
        answers, seconds = self._total
        self._total = answers + self._answers, seconds + now - self._since
        self._left -= 2
        if self._is_used and self._left <= 0 and self.limit * 1.3 <= self.most:
            self._from, self._before, self.phase = self.limit, self._total[0] / max(1e-6, self._total[1]), "testing"
            self._goal = min(self.most, max(self.limit + 1, 2 * self.limit))
            self._skip = int(1.5 * self._goal)
        self.open(now)

    def _judge(self, now: float) -> None:
        """More calls are worth it if the throughput has grown by the square root of their factor."""
        assert self._from is not None
        assert self._before is not None
        throughput, factor = self._throughput(now), self.limit / self._from
        if throughput >= self._before * factor**0.5 and not self.latency.is_above(HEADROOM * SLOWER):
            self.phase, self._before, self._wait = "growing", throughput, FIRST_WAIT
            self.open(now)
            return
        tested = int(self.limit)
        self._wait = min(LAST_WAIT, 2 * self._wait)
        self.limit = min(self.limit, max(self._from, self._from * throughput / self._before))
        self.cause = (
            f"{int(self.limit):,} calls at once: {tested:,} gained nothing, {amount(throughput)} answers a second "
            f"after {amount(self._before)}"
        )
        self._skip = int(self._goal)
        self.hold(now)


def _within(rate: float) -> float:
    return min(max(rate, SLOWEST), FASTEST)


def _whole(limit: float, least: int) -> int:
    """The answers of whole generations of calls, two or more."""
    return ceil(max(2.0, least / limit)) * int(limit)
