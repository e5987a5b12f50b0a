"""What the limit may be: as far as it has grown, a number, or a rate.

Each class has `calls`, how many may run at once; `wait`, the seconds until it allows one call more; and `cause`, what
it has found, as a sentence.
"""

from __future__ import annotations

from math import cbrt, inf
from random import random

from ..._values.describe import amount, plural
from ._evidence import ROUNDING, Pause

ONE_MORE = 0.01  # seconds until one call more starts: before a refusal of 0.1 s is known, 10 calls start in vain
FIRST_CALLS = 16  # whose latency is that of a service without load
SLOWER = 2.0  # times that latency: calls wait
GAIN = 2  # calls that an answer adds: the limit triples with each generation of calls
HEADROOM = 1.25  # times the calls that a plateau needs: their throughput may be measured too low
GENERATIONS = 2  # of calls in a round
MORE = 1.4  # times the calls: the geometric mean of as many and twice as many

FIRST_TEST, LAST_TEST = 8, 512  # answers until a probe, and rounds until growth goes on; the wait doubles if it fails
PROBE_AFTER = 0.15  # seconds after other calls: a burst at a bucket looks like a number
FREE, EACH = 0.2, 2.0  # seconds for which a place is free, and between two such times on average

CUT, GROWTH = 0.7, 0.4  # TCP CUBIC (RFC 9438, section 5): the pace after a refusal, and how fast it grows
LEAST_CALLS = 40.0  # from a cut back to w: 1 in 40 refused is 2.5 %
LONGEST = 20.0  # seconds from a cut back to w, and of a wait after a refusal, however slow the pace is
GAPS = 4.0  # of the pace after a refusal: a bucket has tokens then
BEYOND = 1.6  # times that time: the rate is not where it was, since others have ended, and the search begins again
EVENT = 1.0  # seconds: refusals within them cut the rate once
CALLS_PER_DOUBLING = 3.0  # and the time of an event at least: a search doubles the pace
BURST = 0.5  # of a measured rate may be the burst of a bucket, which is full at the start and after a pause
SLOWEST = 0.05  # calls a second
LATE = 0.05  # seconds by which a start may be late without delaying the next ones


class Latency:
    """Whether calls take twice the latency of the first ones.

    Short answers come first, so the mean of the first calls is known when all of them have ended.
    """

    def __init__(self) -> None:
        self.first = inf
        self._waited = self._sum = 0.0
        self._answers = 0
        self._until = inf  # the start of the last of the first calls

    def close(self, now: float) -> None:
        """The last of the first calls starts."""
        self._until = now

    def add(self, now: float, start: float, running: list[float]) -> None:
        """A call was answered."""
        if start <= self._until:
            self._sum += now - start
            self._answers += 1
        oldest = running[0] if running else now
        if self.first == inf and self._answers and oldest > self._until:
            self.first = self._sum / self._answers
        self._waited += ((now - start > SLOWER * self.first) - self._waited) / FIRST_CALLS

    def compare_with(self, seconds: float) -> None:
        """Compare with this latency from now on."""
        self.first, self._waited = seconds, 0.0

    @property
    def is_high(self) -> bool:
        return self._waited > 0.5  # noqa: PLR2004


class Growth:
    """Grows by time, then with each answer, until calls wait in the service. After some rounds, it goes on to grow.

    Args:
        calls: With which it begins.
        top: The calls that it reaches by time.
        most: Upper limit of calls at once.

    Attributes:
        latency: Of the service.
        reason: Why it does not grow. "": it grows.
    """

    def __init__(self, calls: int, top: int, most: int) -> None:
        self.most = most
        self.latency = Latency()
        self._held = 0  # the calls when it last stopped
        self._rounds = FIRST_TEST  # until it goes on
        self._skip = 0  # answers that are not measured: of calls that have waited
        self.grow(inf, calls, top)

    def grow(self, now: float, calls: int, top: int = 0) -> None:
        """Grow from these calls, by time up to `top`, and then with each answer."""
        self.calls, self.top, self.reason = calls, min(top, self.most), ""
        self._grows_at = now + ONE_MORE
        self._measure(now)

    def hold(self, now: float, calls: int, reason: str) -> None:
        """Hold these calls for some rounds: twice as many as the last time, unless the calls are more."""
        self._rounds = FIRST_TEST if calls > MORE * self._held else min(LAST_TEST, 2 * self._rounds)
        self.calls = self._held = max(1, calls)
        self.top, self.reason = 0, reason
        self._measure(now)

    def _measure(self, now: float) -> None:
        self._since, self._answers = now, 0

    @property
    def cause(self) -> str:
        """The calls at once, and why they are no more."""
        return f"{self.calls:,} calls at once: {self.reason or 'the service has refused none'}"

    def wait(self, now: float, running: int) -> float:
        if running < self.calls:
            return 0.0
        if running >= self.top:
            return inf
        if now < self._grows_at - ROUNDING:
            return self._grows_at - now
        self.calls, self._grows_at = running + 1, now + ONE_MORE
        return 0.0

    def answered(self, now: float, running: int) -> None:
        """Count an answer, while `running` other calls run."""
        if self.calls < self.top or self._skip:
            self._skip = max(0, self._skip - 1)
            self._measure(now)
            return
        self._answers += 1
        is_used = running >= self.calls / 2
        if self.reason:
            if is_used and self._answers >= self._rounds * GENERATIONS * self.calls:
                self._go_on(now)
        elif self.latency.is_high and self.calls < self.most:
            if self._answers >= self.calls:
                self._stop(now)
        else:
            self._measure(now)
            if is_used:
                self.calls = min(self.most, self.calls + GAIN)

    def _stop(self, now: float) -> None:
        """Hold as many calls as the throughput needs without a wait (Little's law), and at least as many as before."""
        throughput = self._answers / max(1e-6, now - self._since)
        needed = int(HEADROOM * throughput * self.latency.first)
        self._skip = self.calls
        reason = f"more only wait, {amount(throughput)} a second are answered"
        self.hold(now, min(self.calls, max(self._held, needed)), reason)

    def _go_on(self, now: float) -> None:
        """Grow from here. The latency of these calls is that without a wait, again by Little's law."""
        self.latency.compare_with(self.calls / HEADROOM * (now - self._since) / self._answers)
        self.grow(now, self.calls)


class Number:
    """The service refuses one call more than a number. Probes with one more test whether it still does.

    From time to time a call is given back: a place is free for a moment, and the probe after it is refused if another
    task has taken the place. Otherwise the first task would keep all places.

    Args:
        known: The number.
        most: Upper limit of calls at once.
        few: The calls of a probe after one that was admitted.

    Attributes:
        known: The number, without a call that is given back. While a probe is under way, `calls` is higher.
        probe_after: The answers until a probe.
    """

    def __init__(self, known: int, most: int, few: int) -> None:
        self.calls = self.known = max(1, known)
        self.most, self.few = most, few
        self.probe_after = self._wait = FIRST_TEST
        self._step = 1  # the calls of a probe
        self._times = 1  # that one more was refused; 0: a probe was admitted since
        self._free_until = self._free_at = -inf  # no probe starts until then; the next call may be given back then
        self._is_given_back = False

    @property
    def cause(self) -> str:
        """The number, with a call that is given back, and why it is the limit."""
        calls = f"{plural(self.known + self._is_given_back, 'call')} at once"
        if not self._times:
            return f"{calls}: the service takes more than when it last refused one"
        return f"{calls}: the service refused one more {plural(self._times, 'time')}"

    def wait(self, now: float, running: int) -> float:
        if running < self.known:
            return 0.0
        return self._free_until - now if running < self.calls else inf

    def is_probe(self, rank: int) -> bool:
        """Whether a call of this rank is one more than the number."""
        return self.calls > self.known <= rank

    def answered(self, now: float, credit: float) -> None:
        """Give one call back, or probe if a refusal is paid."""
        self.probe_after -= 1
        if self.calls > self.known:
            return
        if credit >= 0 and now >= self._free_at:
            self.known, self._is_given_back = self.known - 1, True
            self._free_until, self._free_at = now + FREE, now + EACH * (0.5 + random())
        elif credit >= 1 and self.probe_after <= 0 and self.known < self.most:
            self.calls, self._free_until = min(self.most, self.known + self._step), now + PROBE_AFTER

    def refused(self, rank: int) -> None:
        """A probe was refused. If this confirms the number, the next one comes later; else others have a place."""
        is_confirmed = rank >= self.known + self._is_given_back
        self.calls = self.known = max(1, rank)
        self._times, self._step, self._is_given_back = self._times + 1, 1, False
        self.probe_after = self._wait = min(LAST_TEST, 2 * self._wait) if is_confirmed else FIRST_TEST

    def admitted(self) -> None:
        """A probe was admitted. If the service takes more than before, the next one comes soon."""
        self.known += 1
        if not self._is_given_back:
            self._times, self._step = 0, self.few
            self.probe_after = self._wait = FIRST_TEST
        self._is_given_back = False


class Pace:
    """The pace of starts: a cubic around w, the rate at which calls were last refused.

    Args:
        most: Upper limit of calls at once.
        pause: Of the service.
        now: The pace begins when the pause has ended.
        w: Calls a second. It is a first guess, and the pace doubles until the next refusal, unless this costs a pause.

    Attributes:
        cut_at: The instant of the last cut.
    """

    def __init__(self, most: int, pause: Pause, now: float, w: float) -> None:
        self.calls, self._pause = most, pause
        self.w = max(SLOWEST, w)
        self._is_searching = not pause.longest
        self.cut_at = now
        self.resume(max(now, pause.until))

    @property
    def cause(self) -> str:
        """The pace and why it is the limit."""
        return f"{amount(self.w)} calls a second: the service refuses more, however few run at once"

    def wait(self, now: float, running: int) -> float:
        return self._next_start - now if running < self.calls else inf

    def resume(self, now: float) -> None:
        """The pace grows from now on."""
        self._since = self._next_start = now

    def rate(self, now: float) -> float:
        """The pace, in calls a second."""
        seconds, rate = max(0.0, now - self._since), 0.0
        if not self._is_searching:
            back = max(cbrt((1 - CUT) * self.w / GROWTH), min(LEAST_CALLS / self.w, LONGEST), self._pause.longest)
            rate = self.w * (1 + (1 - CUT) * (seconds / back - 1) ** 3)
            seconds -= BEYOND * back
        if seconds >= 0:
            doubling = max(EVENT, CALLS_PER_DOUBLING / self.w)
            rate = max(rate, self.w * 2.0 ** min(30.0, seconds / doubling))
        return rate

    def start(self, now: float) -> None:
        """A call starts, and delays the next one."""
        rate = self.rate(now)
        if now > self._next_start + LATE + 1 / rate and now > self._since:  # the pace was not tested
            self._since += now - max(self._next_start, self._since)
        self._next_start = max(self._next_start, now - LATE) + 1 / rate

    def refused(self, now: float, admitted: float) -> None:
        """A call was refused. Before it, `admitted` calls a second were admitted."""
        is_paused = self._pause.until > now
        if now >= self.cut_at + EVENT:
            self.w = max(SLOWEST, min(admitted * BURST if is_paused else admitted, self.rate(now)))
            self._is_searching, self.cut_at = False, now
            self._since = max(now, self._pause.until)
        if not is_paused:  # the service has not named the time of the next call
            self._next_start = now + min(LONGEST, GAPS / self.rate(now))
            self._since = max(self._since, self._next_start)
