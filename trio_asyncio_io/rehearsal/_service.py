"""The model of a service: fitted to the calls of a sample, it draws the calls of a simulated run.

Three things are fitted, in this order:

* A **rate**, if the service refused calls. It is a token bucket, which was empty at each refusal. So what was admitted
  between the first refusal and the last one is what flowed in.
* Otherwise a **number of servers**, if calls at a high load took longer. With n servers and one queue, the starts and
  ends of the calls give the time that each call spent in a server. n is the number with which these times do not depend
  on the load.
* The **latencies**: those of the sample, drawn again. Above the ninth decile, they come from a generalized Pareto
  distribution, because a sample hardly contains the longest calls of a long run. If these calls are a kind of their own
  (stragglers), they are drawn as observed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heapreplace
from math import exp, inf, log, sqrt
from random import Random
from statistics import StatisticsError, correlation, fmean, median
from typing import Any, TypeAlias

from .._core.describe import describe
from ._sample import RecordedCall, Sample

__all__ = ["ROUGH", "Answer", "Begin", "Service", "Tail", "fit", "resampled"]

Answer: TypeAlias = tuple[float, Exception | None, Any]  # a call's seconds, its error, and a result that is retried
Begin: TypeAlias = Callable[[float], Answer]  # the instant at which a call starts -> its answer

MIN_REFUSALS = 3
ROUGH = 0.3  # the error of a rate that the sample hardly shows
# Spearman's correlation of load and latency, in standard deviations, above which the service has a limit
SIGNIFICANT = 2.6
TAIL_SHARE = 0.1
MIN_TAIL = 5
# A Hill estimate above this means that moments of the tail hardly exist
HEAVY = 0.33
# Two kinds of calls are apart if one distribution has such a gap with a probability below e^-7
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
    """A service that answers calls. It draws them from those that were observed.

    Attributes:
        admitted: The calls that it did not refuse, without the time that they waited for a server.
        refused: The calls that it refused.
        weights: What answered calls weigh.
        servers: How many calls it works on at once; `inf`: no limit was seen.
        servers_error: The standard deviation of the logarithm of `servers`.
        rate: How many calls it admits per second; `inf`: no limit was seen.
        rate_error: The standard deviation of the logarithm of `rate`.
        burst: How many calls it admits at once.
        tail: The distribution of long latencies, or None: as observed.
        apart: How many calls are a slow kind of their own, or 0.
        longest: The upper limit of a latency: beyond, the sample would have cut it.
        slower: A factor of all latencies.
        unseen: (share, seconds) of calls that the sample has missed.
    """

    admitted: Sequence[Answer]
    refused: Sequence[Answer] = ()
    weights: Sequence[float] = ()
    servers: float = inf
    servers_error: float = 0.0
    rate: float = inf
    rate_error: float = 0.0
    burst: float = 1.0
    tail: Tail | None = None
    apart: int = 0
    longest: float = inf
    slower: float = 1.0
    unseen: tuple[float, float] = (0.0, 0.0)

    @property
    def is_independent(self) -> bool:
        """Whether a call does not depend on the others."""
        return self.servers == inf and self.rate == inf

    def open(self, random: Random) -> Begin:
        """Begin a run."""
        answers = self._draws(self.admitted, random)
        if self.is_independent:
            return lambda _: next(answers)
        return self._limited(answers) if self.rate == inf else self._capped(answers, self._draws(self.refused, random))

    def _limited(self, answers: Iterator[Answer]) -> Begin:
        """Calls wait for a server."""
        free = [0.0] * int(self.servers)

        def begin(now: float) -> Answer:
            seconds, error, result = next(answers)
            end = max(now, free[0]) + seconds
            heapreplace(free, end)
            return end - now, error, result

        return begin

    def _capped(self, answers: Iterator[Answer], refusals: Iterator[Answer]) -> Begin:
        """Calls beyond the rate are refused."""
        tokens, at = self.burst, 0.0

        def begin(now: float) -> Answer:
            nonlocal tokens, at
            tokens, at = min(self.burst, tokens + (now - at) * self.rate), now
            if tokens < 1:
                return next(refusals)
            tokens -= 1
            return next(answers)

        return begin

    def _draws(self, pool: Sequence[Answer], random: Random) -> Iterator[Answer]:
        above = inf if self.tail is None else self.tail.above
        share, missed = self.unseen
        while True:
            for seconds, error, result in random.choices(pool, k=DRAWS):
                drawn = seconds
                if self.tail is not None and above < seconds < inf and error is None:
                    drawn = min(self.longest, self.tail.draw(random))
                if share and random.random() < share:
                    drawn = missed
                yield drawn * self.slower, error, result


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
        weights=[call.weight for call in admitted if call.outcome == "answered"] or [0.0],
        longest=sample.timeout,
    )
    if len(refused) >= MIN_REFUSALS:
        service = _with_rate(service, admitted, refused)
    elif refused:  # too few for a rate: the calls of the run are refused as often
        service = replace(service, admitted=[*service.admitted, *service.refused])
    if service.rate == inf and (found := _servers_of(admitted)) is not None:
        servers, error = found
        service = replace(service, servers=servers, servers_error=error, admitted=_served(admitted, servers))
    return _with_tail(service)


def resampled(service: Service, sample: Sample, random: Random) -> Service:
    """The service that another sample of the same size might have shown.

    The times in a server follow from the number of servers, so the two are drawn together: the throughput stays as
    observed.
    """
    other = replace(service, rate=service.rate * exp(random.gauss(0, service.rate_error)))
    if service.servers < inf:
        admitted = [call for call in sample.calls if call.outcome != "refused"]
        servers = max(1, round(service.servers * exp(random.gauss(0, service.servers_error))))
        other = replace(other, servers=servers, admitted=_served(admitted, servers))
    drawn = random.choices(other.admitted, k=len(other.admitted))
    if all(seconds == inf for seconds, _, _ in drawn):
        drawn = list(other.admitted)
    weights = random.choices(service.weights, k=len(service.weights))
    other = replace(other, admitted=drawn, weights=weights)
    return other if service.tail is None else _with_tail(other)


def _answer(call: RecordedCall, seconds: float) -> Answer:
    return (inf if call.outcome == "cut" else seconds), call.error, call.result


def _with_rate(service: Service, admitted: Sequence[RecordedCall], refused: Sequence[RecordedCall]) -> Service:
    first, last = refused[0].start, refused[-1].start
    in_phase = [call.start for call in admitted if call.phase == refused[0].phase]
    between = sum(first < call.start <= last for call in admitted)
    if between >= MIN_REFUSALS:
        rate, error = between / (last - first), 1 / between
    elif in_phase and in_phase[-1] > in_phase[0]:  # no call was admitted between refusals, as with a fixed window
        rate, error = len(in_phase) / (in_phase[-1] - in_phase[0]), ROUGH
    else:
        return replace(service, admitted=[*service.admitted, *service.refused])
    before = [start for start in in_phase if start <= first]
    burst = max(1.0, len(before) - rate * (first - before[0])) if before else 1.0
    return replace(service, rate=rate, rate_error=error, burst=burst)


def _served(calls: Sequence[RecordedCall], servers: float) -> list[Answer]:
    """The calls without their waits: with so many servers and one queue, the wait of each call is known."""
    free, found = [-inf] * int(servers), []
    floor = median(call.seconds for call in calls) / 100
    for call in calls:
        wait = max(0.0, free[0] - call.start)
        heapreplace(free, max(free[0], call.start + call.seconds))
        found.append(_answer(call, max(call.seconds - wait, floor)))
    return found


def _servers_of(calls: Sequence[RecordedCall]) -> tuple[int, float] | None:
    """The number of servers, and the standard deviation of its logarithm. None: no limit is seen."""
    loads = _ranks([call.load for call in calls if call.error is None and call.outcome != "cut"])

    def dependence(servers: float) -> float:
        """The rank correlation of load and time, in standard deviations: above 0, calls at a high load take longer."""
        times = _served(calls, servers) if servers < inf else [_answer(call, call.seconds) for call in calls]
        ranks = _ranks([seconds for seconds, error, _ in times if error is None and seconds < inf])
        try:
            return correlation(loads, ranks) * sqrt(len(ranks) - 1)
        except StatisticsError:  # all loads or all times are equal, or there is only one
            return 0.0

    def crossing(level: float) -> int:
        low, high = 1, max(call.load for call in calls)
        while low < high:  # the dependence rises with the number of servers
            middle = (low + high) // 2
            low, high = (middle + 1, high) if dependence(middle) < level else (low, middle)
        return low

    if dependence(inf) < SIGNIFICANT:
        return None
    return crossing(0.0), max(0.01, (log(crossing(1.0)) - log(crossing(-1.0))) / 2)


def _ranks(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    return [(bisect_left(ordered, value) + bisect_right(ordered, value)) / 2 for value in values]


def _with_tail(service: Service) -> Service:
    """The service with a distribution for the longest tenth of its answers (Hosking's weighted moments)."""
    seconds = sorted(each for each, error, _ in service.admitted if error is None and each < inf)
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
    return replace(service, tail=Tail(above, 2 * mean * weighted / rest, min(0.9, max(-0.2, 2 - mean / rest))))


def _apart(seconds: Sequence[float]) -> int:
    """How many calls are longer than the widest gap that one distribution would not have; 0: there is none."""
    for far in range(1, len(seconds) // 4):
        below = seconds[max(0, len(seconds) - far - 11) : len(seconds) - far]
        if below[0] <= 0:
            return 0
        gap = log(seconds[-far] / below[-1])
        spread = fmean(log(each / below[0]) for each in below[1:]) if len(below) > 1 else inf
        if gap > log(2) and far * gap > GAP * spread:
            return far
    return 0
