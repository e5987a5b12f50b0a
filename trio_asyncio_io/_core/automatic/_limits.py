"""What the limit may be: as far as it has grown, a number, or a rate.

Each class has `calls`, how many may run at once; `wait`, the seconds until it allows one call more; and `cause`, what
it has found, as a sentence.
"""

from __future__ import annotations

from math import cbrt, inf, log2
from random import random

from ..._values.describe import amount, plural
from ._evidence import ROUNDING

DOUBLING = 0.12  # seconds: a refusal that takes 20 ms lets the limit grow by an eighth
PER_SECOND = 128.0  # calls that are added by time at most: before a refusal of 0.1 s is known, 13 calls start in vain
FIRST_CALLS = 16  # whose latency is that of a service without load
SLOWER = 2.0  # times that latency: calls wait
GAIN = 2.0  # calls that an answer adds: the limit triples with each generation of calls
GROWS = 1.4  # of the throughput while the limit doubles: the geometric mean of 1 and 2
HEADROOM = 1.25  # for a throughput that was measured too low
GENERATIONS = 2  # of calls, of which a throughput is measured

FIRST_TEST, LAST_TEST = 8, 512  # answers until a probe, and throughputs until a test; the wait doubles if it fails
PROBE_AFTER = 0.15  # seconds after other calls: a burst at a bucket looks like a number
FREE, EACH = 0.2, 2.0  # seconds for which a place is free, and between two such times on average

CUT, GROWTH = 0.7, 0.4  # TCP CUBIC (RFC 9438, section 5): the pace after a refusal, and how fast it grows
LEAST_CALLS = 40.0  # from a cut back to w: 1 in 40 refused is 2.5 %
LONGEST = 20.0  # seconds from a cut back to w, and of a wait after a refusal, however slow the pace is
GAPS = 4.0  # of the pace after a refusal: a bucket has tokens then
BEYOND = 1.6  # times that time: the rate is not where it was, since others have ended, and the search begins again
EVENT = 1.0  # seconds: refusals within them cut the rate once
CALLS_PER_DOUBLING = 3.0  # and the time of an event at least: a search doubles the pace
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

    @property
    def is_high(self) -> bool:
        return self._waited > 0.5  # noqa: PLR2004


class Growth:
    """Grows by time, then with each answer, until calls wait in the service. Then twice as many are tested at times.

    A throughput is that of whole generations of calls: calls of one latency end in one pattern, so that a part of a
    generation has no throughput of its own.

    Args:
        first: The calls with which it begins.
        top: The calls that it reaches by time.
        most: Upper limit of calls at once.

    Attributes:
        is_by_time: Whether it has not yet reached `top`, and nothing has cut it.
        latency: Of the service.
        reason: Of a limit that is held. "": there was none.
    """

    def __init__(self, first: float, top: float, most: int) -> None:
        self.most = most
        self.latency = Latency()
        self._skip = 0  # answers that are not measured
        self._wait = FIRST_TEST  # throughputs until a test
        self._before: tuple[float, float] | None = None  # the calls and their throughput before a test
        self.climb(inf, first, top)

    def climb(self, now: float, calls: float, top: float) -> None:
        """Double the calls by time, from so many on, up to `top`."""
        self.grow(now, calls)
        self.is_by_time, self.top, self._climbed_at = True, top, now

    def grow(self, now: float, calls: float) -> None:
        """Add calls with each answer, from so many on."""
        self.calls, self.reason = calls, ""
        self._is_growing, self.is_by_time, self._before = True, False, None
        self._open(now)

    def hold(self, now: float, calls: float, reason: str) -> None:
        """So many calls, until twice as many are tested."""
        self.calls, self.reason = max(1.0, calls), reason
        self._is_growing, self.is_by_time, self._before = False, False, None
        self._open(now)

    def _open(self, now: float) -> None:
        """A measurement begins."""
        self._since, self._answers, self._calls_then, self._peak = now, 0, self.calls, 0

    @property
    def cause(self) -> str:
        """The calls at once, and why they are no more."""
        return f"{int(self.calls + ROUNDING):,} calls at once: {self.reason or 'the service has refused none'}"

    def wait(self, now: float, running: int) -> float:
        if self.is_by_time and now > self._climbed_at:
            seconds, self._climbed_at = now - self._climbed_at, now
            doublings = min(20.0, seconds / DOUBLING)
            self.calls = min(self.top, self.calls * 2**doublings, self.calls + PER_SECOND * seconds)
            if self.calls >= self.top:
                self.grow(now, self.top)
        if running < int(self.calls + ROUNDING):
            return 0.0
        if not self.is_by_time:
            return inf
        seconds = max(DOUBLING * log2((running + 1) / self.calls), (running + 1 - self.calls) / PER_SECOND)
        return max(1e-6, self._climbed_at + seconds - now)

    def answered(self, now: float, running: int) -> None:
        """Measure an answer, while so many other calls run."""
        if self.is_by_time:
            return
        self._peak = max(self._peak, running + 1)
        if self._skip:
            self._skip -= 1
            self._open(now)
            return
        self._answers += 1
        if self._is_growing:
            self._grow(now)
        elif self._before is not None and self._answers >= GENERATIONS * int(self.calls):
            self._judge(now, *self._before)
        elif self._before is None and self._answers >= self._wait * GENERATIONS * int(self.calls):
            self._test(now)

    @property
    def _is_used(self) -> bool:
        return self._peak >= int(self._calls_then)

    def _grow(self, now: float) -> None:
        if self._is_used:
            self.calls = min(self.most, self.calls + GAIN)
        if self.latency.is_high and self._answers >= FIRST_CALLS // 2 and now > self._since:
            throughput = self._answers / (now - self._since)
            self._skip = self._peak
            reason = f"more only wait, {amount(throughput)} a second are answered"
            self.hold(now, min(self.calls, HEADROOM * throughput * self.latency.first), reason)  # Little's law
        elif self._answers >= max(FIRST_CALLS, self._calls_then):
            self._is_growing = self.calls < self.most or not self._is_used
            self._open(now)

    def _test(self, now: float) -> None:
        """Test twice the limit."""
        if self._is_used and self.calls * 1.3 <= self.most:
            self._before = self.calls, self._answers / max(1e-6, now - self._since)
            self._skip = int(3 * self.calls)  # until the calls of twice the limit are answered
            self.calls = min(self.most, 2 * self.calls)
        self._open(now)

    def _judge(self, now: float, calls: float, before: float) -> None:
        """Twice the limit was tested."""
        tested, throughput = self.calls, self._answers / max(1e-6, now - self._since)
        if throughput >= GROWS * before:
            self._wait, self.latency.first = FIRST_TEST, tested / throughput  # no call waits
            self.grow(now, tested)
            return
        self._wait, self._skip = min(LAST_TEST, 2 * self._wait), int(tested)
        self.hold(now, calls, self.reason)


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

    Attributes:
        w: Calls a second.
        next_start: The next call may start then.
        longest_pause: The longest `Retry-After`.
    """

    def __init__(self, most: int) -> None:
        self.calls = most
        self.w = 1.0
        self.next_start = self._since = -inf  # the pace has grown since then
        self.longest_pause = 0.0
        self._is_searching = True  # w is a first guess, and the pace doubles until the next refusal

    @property
    def cause(self) -> str:
        """The pace and why it is the limit."""
        return f"{amount(self.w)} calls a second: the service refuses more, however few run at once"

    def wait(self, now: float, running: int) -> float:
        return self.next_start - now if running < self.calls else inf

    def begin(self, now: float, w: float) -> None:
        """Search for the rate."""
        self.w, self._is_searching = max(SLOWEST, w), True
        self.resume(now)

    def resume(self, now: float) -> None:
        self._since = self.next_start = now

    def rate(self, now: float) -> float:
        seconds, rate = max(0.0, now - self._since), 0.0
        if not self._is_searching:
            back = max(cbrt((1 - CUT) * self.w / GROWTH), min(LEAST_CALLS / self.w, LONGEST), self.longest_pause)
            rate = self.w * (1 + (1 - CUT) * (seconds / back - 1) ** 3)
            seconds -= BEYOND * back
        if seconds >= 0:
            doubling = max(EVENT, CALLS_PER_DOUBLING / self.w)
            rate = max(rate, self.w * 2.0 ** min(30.0, seconds / doubling))
        return rate

    def start(self, now: float) -> None:
        """A call starts, and delays the next one."""
        rate = self.rate(now)
        if now > self.next_start + LATE + 1 / rate and now > self._since:  # the pace was not tested
            self._since += now - max(self.next_start, self._since)
        self.next_start = max(self.next_start, now - LATE) + 1 / rate

    def hold(self, now: float) -> None:
        """No call starts for four of the usual gaps."""
        self.next_start = now + min(LONGEST, GAPS / self.rate(now))
        self._since = max(self._since, self.next_start)

    def cut(self, now: float, resumes: float, admitted: float) -> None:
        """Calls were refused at the present pace, and so many a second were admitted."""
        self.w, self._is_searching = max(SLOWEST, min(admitted, self.rate(now))), False
        self._since = resumes
