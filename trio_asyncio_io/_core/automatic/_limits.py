"""What the limit may be: the start, a number, a rate or a plateau."""

from __future__ import annotations

from math import cbrt, ceil, inf, log2
from random import random

from ..._values.describe import amount, plural

DOUBLING = 0.12  # seconds: a refusal that takes 20 ms lets the limit grow by an eighth

FIRST_TEST, LAST_TEST = 8, 512  # answers until a probe, and throughputs until a test; the wait doubles if it fails
A_FEW = 4  # calls of a probe after one that was admitted: at a bucket, several are refused
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

FIRST_CALLS = 16  # whose latency is that of a service without load
SLOWER = 2.0  # times that latency: calls wait
GAIN = 2.0  # calls that an answer adds: the limit triples with each generation of calls
GROWS = 1.4  # of the throughput while the limit doubles: the geometric mean of 1 and 2
HEADROOM = 1.25  # for a throughput that was measured too low
FEWEST = 40  # answers, of which a throughput is measured


class Ramp:
    """The limit doubles by time, at the start and after an outage."""

    def __init__(self, now: float, start: float, top: float) -> None:
        self.since, self.start, self.top = now, start, top

    def limit(self, now: float) -> float:
        return min(self.top, self.start * 2 ** min(20.0, max(0.0, now - self.since) / DOUBLING))

    def wait(self, running: int, now: float) -> float:
        """The seconds until one call more may run."""
        doublings = log2(max(self.start, running + 1) / self.start)
        return max(1e-6, self.since + DOUBLING * doublings - now)


class Number:
    """A number of calls at once: the service refuses one more. Probes with one more test whether it still does.

    From time to time a call is given back: a place is free for a moment, and the probe after it is refused if another
    task has taken the place. Otherwise the first task would keep all places.

    Args:
        known: The number.
        answers: Those until now.

    Attributes:
        known: The number, without a call that is given back.
        times: How often one more was refused; 0: a probe was admitted since.
        step: The calls of a probe.
        probe_at: The answers after which it is due.
        free_at: The next call may be given back then.
        free_until: No probe starts until then.
    """

    def __init__(self, known: int, answers: int) -> None:
        self.known, self.times, self.probe_at = max(1, known), 1, answers + FIRST_TEST
        self.free_until = self.free_at = -inf
        self._is_given_back = False
        self.step, self._wait = 1, FIRST_TEST

    @property
    def found(self) -> int:
        """The number, with a call that is given back."""
        return self.known + self._is_given_back

    @property
    def cause(self) -> str:
        """Why it is the limit."""
        if not self.times:
            return "the service takes more than when it last refused one"
        return f"the service refused one more {plural(self.times, 'time')}"

    def probe(self, now: float) -> None:
        """More calls may start soon."""
        self.free_until = now + PROBE_AFTER

    def refused(self, rank: int, answers: int) -> None:
        """A probe was refused, as predicted: the next one comes later."""
        self.step, self._wait = 1, min(LAST_TEST, 2 * self._wait)
        self.known, self._is_given_back = max(1, rank), False
        self.times, self.probe_at = self.times + 1, answers + self._wait

    def admitted(self, answers: int) -> None:
        """A probe was admitted. If the service takes more than before, the next one comes soon, with a few calls."""
        self.known += 1
        if not self._is_given_back:
            self.times = 0
            self.step, self._wait, self.probe_at = A_FEW, FIRST_TEST, answers + FIRST_TEST
        self._is_given_back = False

    def give_back(self, now: float) -> None:
        """One call fewer runs, until a probe."""
        self.known, self._is_given_back = self.known - 1, True
        self.free_until, self.free_at = now + FREE, now + EACH * (0.5 + random())


class Pace:
    """The pace of starts: a cubic around w, the rate at which calls were last refused.

    Attributes:
        w: Calls a second.
        next_start: The next call may start then.
        longest_pause: The longest `Retry-After`.
    """

    def __init__(self) -> None:
        self.w = 1.0
        self.next_start = self._since = -inf  # the pace has grown since then
        self.longest_pause = 0.0
        self._is_searching = True  # w is a first guess, and the pace doubles until the next refusal

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
        return max(rate, SLOWEST)

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


class Plateau:
    """Finds the number of calls at once above which the throughput does not grow.

    The limit grows until calls wait. Then it is held, and from time to time twice the limit is tested. A throughput is
    that of whole generations of calls: calls of one latency end in one pattern, so that a part of a generation has no
    throughput of its own.

    Attributes:
        limit: Calls at once.
        latency: Of the service.
        cause: Of the limit, as a sentence.
    """

    def __init__(self, limit: float, most: int) -> None:
        self.limit, self.most = limit, most
        self.latency = Latency()
        self.cause = ""
        self._is_growing = True
        self._before: tuple[float, float] | None = None  # the limit and its throughput before a test
        self._skip = 0  # answers that are not measured
        self._wait = FIRST_TEST  # throughputs until a test
        self.open(0.0)

    def open(self, now: float) -> None:
        """A window begins."""
        self._since, self._answers, self._limit_then, self._peak = now, 0, self.limit, 0

    def hold(self, now: float, limit: float) -> None:
        """The limit stays, until twice as many calls are tested."""
        self.limit, self._is_growing, self._before = max(1.0, limit), False, None
        self.open(now)

    def grow(self, now: float) -> None:
        """The limit grows with each answer."""
        self._is_growing, self._before = True, None
        self.open(now)

    def answered(self, now: float, running: int) -> None:
        """Measure an answer, while so many other calls run."""
        self._peak = max(self._peak, running + 1)
        if self._before is not None:
            self.limit = max(self.limit, min(self.most, 2 * self._before[0], self.limit + 1))
        if self._skip:
            self._skip -= 1
            self.open(now)
            return
        self._answers += 1
        generations = ceil(max(2.0, FEWEST / self.limit))
        if self._is_growing:
            self._grow(now)
        elif self._before is not None and self._answers >= generations * int(self.limit):
            self._judge(now, *self._before)
        elif self._before is None and self._answers >= self._wait * generations * int(self.limit):
            self._test(now)

    @property
    def _is_used(self) -> bool:
        return self._peak >= int(self._limit_then)

    def _grow(self, now: float) -> None:
        if self._is_used:
            self.limit = min(self.most, self.limit + GAIN)
        if self.latency.is_high and self._answers >= FIRST_CALLS // 2 and now > self._since:
            throughput = self._answers / (now - self._since)
            self._skip = self._peak
            self.hold(now, min(self.limit, HEADROOM * throughput * self.latency.first))  # Little's law
            self.cause = (
                f"{int(self.limit):,} calls at once: more only wait, {amount(throughput)} a second are answered"
            )
        elif self._answers >= max(FIRST_CALLS, self._limit_then):
            self._is_growing = self.limit < self.most or not self._is_used
            self.open(now)

    def _test(self, now: float) -> None:
        """Test twice the limit."""
        if self._is_used and self.limit * 1.3 <= self.most:
            self._before = self.limit, self._answers / max(1e-6, now - self._since)
            self._skip = int(3 * self.limit)  # until the calls of twice the limit are answered
        self.open(now)

    def _judge(self, now: float, limit: float, before: float) -> None:
        """Twice the limit was tested."""
        tested, throughput = self.limit, self._answers / max(1e-6, now - self._since)
        if throughput >= GROWS * before:
            self._wait, self.latency.first = FIRST_TEST, tested / throughput  # no call waits
            self.grow(now)
            return
        self._wait, self._skip = min(LAST_TEST, 2 * self._wait), int(tested)
        self.hold(now, limit)
