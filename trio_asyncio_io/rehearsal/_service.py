"""The model of a service: fitted to the calls of a sample, it draws the calls of a simulated run.

Three things are fitted, in this order:

* A **rate**, if the service refused calls: the limits that explain which calls were refused. If their rates differ by
  more than a fifth, the sample cannot tell the rate, and the forecast covers all of them.
* Otherwise a **number of servers**, if calls took longer at a high load. Given n servers and one queue, the starts and
  ends of the calls determine how long each call was in a server. n is chosen so that these times do not depend on the
  load.
* The **latencies** are drawn from the sample. Above the ninth decile, they come from a generalized Pareto distribution,
  because a sample hardly contains the longest calls of a long run. If these calls are a separate kind (stragglers),
  they are drawn from the sample as well.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heapreplace
from math import exp, inf, log, sqrt
from random import Random
from statistics import StatisticsError, correlation, fmean, median
from typing import TypeAlias

from .._values.describe import describe
from ._cap import FINE_STEP, Cap, caps_of
from ._sample import RecordedCall, Sample

Answer: TypeAlias = tuple[float, RecordedCall]  # a call's seconds, and the call of the sample that it is like
Begin: TypeAlias = Callable[[float, float], Answer]  # the instants at which a call starts, and is cut -> its answer

MIN_REFUSALS = 12  # fewer may fit a limit by chance
ALIKE = 1.2  # rates whose highest and lowest differ by this factor at most are one rate
# Bounds of the search: multiples of the admitted rate of the sample, and of the highest rate that its load can need
LOW_RATES, HIGH_RATES = 0.1, 2.0
# Spearman's correlation of load and latency, in standard deviations, above which the service has a limit
SIGNIFICANT = 2.6
TAIL_SHARE = 0.1
MIN_TAIL = 5
# A Hill estimate above this means that moments of the tail hardly exist
HEAVY = 0.33
# Calls beyond a gap are a kind of their own if one distribution has such a gap with a probability below e^-7
GAP = 7.0
DRAWS = 1024


@dataclass(frozen=True, slots=True)
class Tail:
    """A generalized Pareto distribution of the latencies above a threshold, in seconds."""

    above: float
    scale: float
    shape: float

    def draw(self, random: Random) -> float:
        """A latency above the threshold."""
        rest = 1 - random.random()
        return self.above + (
            self.scale * (rest**-self.shape - 1) / self.shape if self.shape else -self.scale * log(rest)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """The model of a service: it draws answers from the calls of a sample.

    Attributes:
        admitted: The calls that the service did not refuse, without their waits for a server.
        refused: The calls that it refused.
        weights: The weights of the calls.
        servers: The number of calls that it processes at once; `inf`: the sample shows no limit.
        servers_error: The standard deviation of the logarithm of `servers`.
        cap: The calls that it admits, per second and at once; None: the sample shows no limit.
        caps: The caps that fit the sample, by rate.
        is_bounded: Whether the highest of these caps limits the load of the sample.
        tail: The distribution of long latencies; None: they are drawn as observed.
        apart: The number of calls that are a separate, slow kind.
        longest: The upper limit of a latency, in seconds: the sample would have cut a longer call.
        hold: The seconds for which a call that hangs keeps its server, unless it is cut: the longest call's duration.
        slower: A factor of the latencies of the sample, above 0.
        unseen: (share, seconds) of calls that the sample has missed.
    """

    admitted: Sequence[Answer]
    refused: Sequence[Answer] = ()
    weights: Sequence[float] = ()
    servers: float = inf
    servers_error: float = 0.0
    cap: Cap | None = None
    caps: Sequence[Cap] = ()
    is_bounded: bool = True
    tail: Tail | None = None
    apart: int = 0
    longest: float = inf
    hold: float = inf
    slower: float = 1.0
    unseen: tuple[float, float] = (0.0, 0.0)

    @property
    def is_independent(self) -> bool:
        """Whether a call does not depend on the others."""
        return self.servers == inf and self.cap is None

    @property
    def is_known(self) -> bool:
        """Whether the service refused no call, or all caps that fit the sample have about the same rate."""
        return self.caps[-1].rate <= ALIKE * self.caps[0].rate if self.caps else not self.refused

    def open(self, random: Random) -> Begin:
        """Begin a run."""
        answers = self._draws(self.admitted, random)
        if self.cap is not None:
            admits, refusals = self.cap.open(random), self._draws(self.refused, random)
            return lambda now, _: next(answers if admits(now) else refusals)
        return self._limited(answers) if self.servers < inf else lambda _, __: next(answers)

    def _limited(self, answers: Iterator[Answer]) -> Begin:
        """Begin a run in which calls wait for a server. A call that is cut frees its server, or stops waiting."""
        free = [0.0] * int(self.servers)

        def begin(now: float, until: float) -> Answer:
            seconds, call = next(answers)
            start = max(now, free[0])
            if start >= until:
                return inf, call
            hold = min(seconds, self.hold) if seconds == inf else seconds
            heapreplace(free, min(start + hold, until))
            return start - now + seconds, call

        return begin

    def _draws(self, pool: Sequence[Answer], random: Random) -> Iterator[Answer]:
        above = inf if self.tail is None else self.tail.above
        share, missed = self.unseen
        while True:
            for seconds, call in random.choices(pool, k=DRAWS):
                drawn = seconds
                if self.tail is not None and above < seconds < inf and call.error is None:
                    drawn = min(self.longest, self.tail.draw(random))
                yield (missed if share and random.random() < share else drawn * self.slower), call


def fit(sample: Sample) -> Service:
    """The service that explains the sample.

    Raises:
        ValueError: No call was answered.
    """
    admitted = [call for call in sample.calls if call.outcome != "refused"]
    refused = [call for call in sample.calls if call.outcome == "refused"]
    if not any(call.outcome in {"answered", "retried result"} for call in admitted):
        cause = next((call.error for call in reversed(sample.calls) if call.error is not None), None)
        latest = "" if cause is None else f", the last with {describe(cause)}"
        raise ValueError(
            f"the sample must have a call that was answered, got {sample}{latest}. Repair the function, or raise its "
            "timeout"
        )
    service = Service(
        admitted=[_answer(call, call.seconds) for call in admitted],
        refused=[_answer(call, call.seconds) for call in refused],
        weights=[call.weight for call in sample.calls],
        longest=sample.timeout,
        hold=max(call.seconds for call in sample.calls),
    )
    if len(refused) >= MIN_REFUSALS:
        service = _with_caps(service, sample)
    if refused and service.cap is None:  # too few, or not for a rate: the calls of the run are refused as often
        service = replace(service, admitted=[*service.admitted, *service.refused])
    if service.cap is None and (found := _servers_of(admitted)) is not None:
        servers, error = found
        service = replace(service, servers=servers, servers_error=error, admitted=_served(admitted, servers))
    return _with_tail(service)


def resampled(service: Service, sample: Sample, random: Random, share: float) -> Service:
    """The model that another sample of the same size might have given.

    The times in a server follow from the number of servers, so the two are drawn together: the throughput stays as
    observed.

    Args:
        share: The position of its cap among those that fit the sample: from 0, the slowest, to 1, the fastest.
    """
    other = service
    if service.cap is not None:
        cap = service.caps[round(share * (len(service.caps) - 1))]
        other = replace(service, cap=replace(cap, rate=cap.rate * FINE_STEP ** random.uniform(-1, 1)))
    if service.servers < inf:
        admitted = [call for call in sample.calls if call.outcome != "refused"]
        servers = max(1, round(service.servers * exp(random.gauss(0, service.servers_error))))
        other = replace(other, servers=servers, admitted=_served(admitted, servers))
    drawn = random.choices(other.admitted, k=len(other.admitted))
    if all(seconds == inf for seconds, _ in drawn):
        drawn = list(other.admitted)
    weights = random.choices(service.weights, k=len(service.weights))
    other = replace(other, admitted=drawn, weights=weights)
    return other if service.tail is None else _with_tail(other)


def _answer(call: RecordedCall, seconds: float) -> Answer:
    """The call and its duration, rounded to nanoseconds: measured, equal durations differ by rounding errors."""
    return (inf if call.outcome == "cut" else round(seconds, ndigits=9)), call


def _with_caps(service: Service, sample: Sample) -> Service:
    """The service with all caps that explain the sample. Its own cap is the middle one."""
    answered = [call.seconds for call in sample.calls if call.outcome in {"answered", "retried result"}]
    highest = HIGH_RATES * sample.tested / max(median(answered), sample.seconds / len(sample.calls) / 100)
    lowest = min(highest, LOW_RATES * len(answered) / sample.seconds)
    caps = caps_of(sample.calls, lowest, highest)
    if not caps:
        return service
    is_bounded = caps[-1].rate < highest / ALIKE
    found = replace(service, cap=_middle(caps), caps=caps, is_bounded=is_bounded)
    return found if found.is_known else replace(found, caps=_widened(caps, is_bounded=is_bounded))


def _widened(caps: Sequence[Cap], *, is_bounded: bool) -> Sequence[Cap]:
    """The caps with a margin on both sides: a sample that cannot tell the rate does not show its limits exactly."""
    lowest, highest = caps[0], caps[-1]
    fastest = replace(highest, rate=highest.rate * ALIKE, burst=highest.burst if is_bounded else inf)
    return [replace(lowest, rate=lowest.rate / ALIKE), *caps, fastest]


def _middle(caps: Sequence[Cap]) -> Cap:
    """The cap whose rate is in the middle between the lowest and the highest, by their logarithms."""
    middle = sqrt(caps[0].rate * caps[-1].rate)
    return min(caps, key=lambda cap: abs(log(cap.rate / middle)))


def _served(calls: Sequence[RecordedCall], servers: float) -> list[Answer]:
    """The calls without their waits, which follow from the number of servers and one queue.

    A call that was cut before it had a server is left out.
    """
    free, found = [-inf] * int(servers), []
    floor = median(call.seconds for call in calls) / 100
    for call in calls:
        wait = max(0.0, free[0] - call.start)
        if call.outcome == "cut" and wait >= call.seconds:
            continue
        heapreplace(free, max(free[0], call.start + call.seconds))
        found.append(_answer(call, max(call.seconds - wait, floor)))
    return found


def _servers_of(calls: Sequence[RecordedCall]) -> tuple[int, float] | None:
    """The number of servers, and the standard deviation of its logarithm. None: the sample shows no limit."""
    loads = _ranks([call.load for call in calls if call.error is None and call.outcome != "cut"])

    def dependence(servers: float) -> float:
        """The rank correlation of load and time, in standard deviations: above 0, calls at a high load take longer."""
        times = _served(calls, servers) if servers < inf else [_answer(call, call.seconds) for call in calls]
        ranks = _ranks([seconds for seconds, call in times if call.error is None and seconds < inf])
        try:
            return correlation(loads, ranks) * sqrt(len(ranks) - 1)
        except StatisticsError:  # all loads or all times are equal, or there is only one
            return 0.0

    def crossing(level: float) -> float:
        """The number of servers at which the dependence reaches a level, interpolated."""
        low, high = 1, max(call.load for call in calls)
        while low < high:  # the dependence rises with the number of servers
            middle = (low + high) // 2
            low, high = (middle + 1, high) if dependence(middle) < level else (low, middle)
        if low == 1 or (above := dependence(low)) <= level:
            return low
        below = dependence(low - 1)
        return low - (above - level) / (above - below)

    if dependence(inf) < SIGNIFICANT:
        return None
    return round(crossing(0.0)), max(0.01, (log(crossing(1.0)) - log(crossing(-1.0))) / 2)


def _ranks(values: Sequence[float]) -> list[float]:
    """The ranks of the values. Values that differ only by rounding errors are equal."""
    values = [round(value, ndigits=9) for value in values]
    ordered = sorted(values)
    return [(bisect_left(ordered, value) + bisect_right(ordered, value)) / 2 for value in values]


def _with_tail(service: Service) -> Service:
    """The service with a distribution for the longest tenth of its answers (Hosking's weighted moments)."""
    seconds = sorted(each for each, call in service.admitted if call.error is None and each < inf)
    apart = _apart(seconds)
    service = replace(service, tail=None, apart=apart)
    most = max(2 * MIN_TAIL, int(TAIL_SHARE * len(seconds)))
    if apart:
        most = min(most, apart // 2)
    if not MIN_TAIL <= most < len(seconds) or seconds[-most - 1] <= 0:
        return service
    above = seconds[-most - 1]
    hill = fmean(log(each / above) for each in seconds[-most:])
    if hill * (1 - 1.3 / sqrt(most)) > HEAVY:
        shape = min(hill, 0.95)
        return replace(service, tail=Tail(above, shape * above, shape))
    excess = [each - above for each in seconds[-most:]]
    mean = fmean(excess)
    weighted = fmean(each * (most - 1 - rank) / (most - 1) for rank, each in enumerate(excess))
    rest = mean - 2 * weighted
    if rest <= 0:
        return service
    shape = min(0.9, max(-0.2, 2 - mean / rest))
    return replace(service, tail=Tail(above, mean * (1 - shape), shape))  # with the mean of the sample


def _apart(seconds: Sequence[float]) -> int:
    """The number of calls beyond a gap that one distribution would not have; 0: there is no such gap."""
    for far in range(1, len(seconds) // 4):
        below = seconds[max(0, len(seconds) - far - 11) : len(seconds) - far]
        if below[0] <= 0:
            return 0
        gap = log(seconds[-far] / below[-1])
        spread = fmean(log(each / below[0]) for each in below[1:]) if len(below) > 1 else inf
        if gap > log(2) and far * gap > GAP * spread:
            return far
    return 0
