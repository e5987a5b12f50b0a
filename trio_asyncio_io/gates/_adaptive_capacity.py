"""The gate `AdaptiveCapacity`: as many calls at once as raise the throughput.

The model. A service serves some number of calls at once, its knee. Below the knee, each further call raises the
throughput; above it, calls only wait in the service, and the latency rises instead. By Little's law,

    calls at once = throughput * latency

so at the knee there are as many calls as the throughput takes at the least latency: BBR's bandwidth-delay product.
The throughput decides, because a batch of records does not care about 50 ms: a service that is only far away, or
becomes slower, gets all calls. The throughput alone has two blind spots. It is the same at the knee and far above it,
and a step up gains throughput from other processes even if the service is saturated. In both cases calls wait, and the
latency shows it. An answer that took no time did not come from the service, so it is not measured.

The state. Time is divided into windows, and the limit changes between them. The gate is in one of three phases:

    climbing     the limit doubles while the throughput follows
    descending   the limit halves until the latency no longer falls (BBR's ProbeRTT): how far it fell shows how many of
                 the calls were waiting
    holding      the limit stays for 8 windows; then the gate tries, in turn, a descent and a step up of 1.25 x

A first step that gains nothing began above the knee, so a descent follows it. A start so close to the maximum that a
step would prove nothing begins with a descent.

Beside these, throttled calls and overload cut the limit, as in TCP.
"""

from __future__ import annotations

from math import ceil, inf, sqrt
from typing import Literal, TypeAlias

from .._core.gate import Classify, ConfiguredGate, Outcome
from .._values.checks import check_int

__all__ = ["AdaptiveCapacity"]

Step: TypeAlias = Literal["first window", "up", "descent", "none"]

# Steps
CLIMB = 2.0  # and of a descent
PROBE = 1.25
GAIN = 0.5  # of a step up that the throughput must gain: below, more calls wait than are served
NO_GAIN = 0.2  # of a step up: it was saturated already
USED = 0.5  # of the limit, so that a step up makes sense
HELD_WINDOWS = 8  # so that a step that fails costs a ninth of the time at most

# Latencies
QUEUE = 1.25  # times the least latency: calls wait. It is one step of a probe
FALLEN = 0.75  # halving the calls halves the latency if all of them waited: half of that
AGEING = 1.001  # of the least latency, per window: a service that became slower for good is accepted within minutes
ERRORS = 2.0  # standard errors of a mean: one side of a 95 % interval
PRECISION = 0.1  # of the mean latency that is enough in a descent

# Windows
MIN_SECONDS, LATENCIES, MIN_CALLS = 1.0, 4.0, 20
DESCENT_SECONDS, DESCENT_CALLS = 0.5, 5  # shorter, since the throughput is low

# Cuts
CUT = 0.7
SECONDS_PER_CUT = 1.0

FORGOTTEN_AFTER = 600.0  # seconds
ROUNDING = 0.01  # calls


class _Window:
    """The calls that ended in a span of time. The latency covers only calls that also started in it.

    Attributes:
        since: Its start.
        peak: The largest number of calls at once.
        calls: The number of calls that ended.
        fresh: How many of them started in the window.
    """

    __slots__ = ("_seconds", "_squares", "_sum", "calls", "fresh", "peak", "since")

    def __init__(self, since: float, running: int) -> None:
        self.since = since
        self.peak = running
        self.calls = self.fresh = 0
        self._seconds = 0.0  # of all calls
        self._sum = self._squares = 0.0  # of the fresh ones

    def add(self, now: float, seconds: float) -> None:
        """A call has ended."""
        self.calls += 1
        self._seconds += seconds
        if now - seconds >= self.since:
            self.fresh += 1
            self._sum += seconds
            self._squares += seconds * seconds

    @property
    def latency(self) -> float:
        """The mean; of all calls if none is fresh."""
        return self._sum / self.fresh if self.fresh else self._seconds / self.calls

    @property
    def error(self) -> float:
        """By how much the latency may be wrong."""
        if not self.fresh:
            return 0.0
        variance = max(0.0, self._squares / self.fresh - self.latency * self.latency)
        return ERRORS * sqrt(variance / self.fresh)

    def throughput(self, now: float) -> float:
        """Calls per second."""
        return self.calls / (now - self.since)

    def is_over(self, now: float, limit: float) -> bool:
        """Whether the throughput belongs to this limit: few of the calls ran under the previous one."""
        seconds = max(MIN_SECONDS, LATENCIES * self._seconds / self.calls)
        return self.calls >= MIN_CALLS + 2 * limit and now - self.since >= seconds

    def has_latency(self, now: float) -> bool:
        """Whether the latency is good enough for a step of a descent."""
        if now - self.since < DESCENT_SECONDS or self.fresh < DESCENT_CALLS:
            return False
        return self.fresh >= MIN_CALLS or self.error <= PRECISION * self.latency


class AdaptiveCapacity(ConfiguredGate):
    """Finds the number of calls at once at which more of them no longer raise the throughput.

    It climbs: the limit doubles while each step raises the throughput by at least half as much as the limit, and calls
    take at most 1.25 x the least latency. Otherwise the limit becomes the number of calls that the throughput takes at
    the least latency (Little's law), at least the limit before the step.

    A descent shows whether calls wait in the service: the limit halves until the latency no longer falls. Then it
    becomes the former limit, multiplied by how far the latency fell. A descent follows if the very first step gains
    nothing, and comes first if the maximum leaves no room for a step of 1.25 x.

    The limit then stays for 8 windows. After that the gate tries, in turn, a descent and 1.25 x more calls, under the
    conditions above. A descent takes half a second or 5 calls for each halving, and costs about 2 % of the throughput.
    Calls that are throttled or overload cut the limit to 0.7 x, at most once a second. It rises only if at least half
    of it is used.

    If no call succeeds between two cuts, the service is down, and not overloaded by this operator. Calls of less than a
    second that started before the first of them do not count. When calls succeed again, each raises the limit by 1, up
    to where it was before the first of these cuts: the slow start of TCP.

    A window takes 1 s, 4 x the mean latency, and 20 + 2 x the limit calls, whichever is longest.

    Operators that share it share the limit: it counts the calls of all of them. If several processes use one service,
    choose `start` so that all of them together start below its knee. From above they come down too, but in steps.

    Args:
        start: The first limit, 1 or more.
        maximum: The upper limit, at least `start` and at most the operator's `capacity`.
        classify: exception -> `Outcome` or its kind. None (the default): the kind that `Outcome` describes.
        name: Gates of one name share their state within a Trio run; see `Gate`. None (the default): it is not shared.

    Raises:
        TypeError, ValueError: An argument is out of its range.

    Example:
        ordered_wait(urls, fetch, timeout=10.0, capacity=200, gate=AdaptiveCapacity(8, 200))
    """

    _arguments = ("start", "maximum")

    def __init__(
        self, start: int = 8, maximum: int = 100, *, classify: Classify | None = None, name: str | None = None
    ) -> None:
        self.start = check_int("start", start, at_least=1)
        self.maximum = check_int("maximum", maximum, at_least=self.start, limit_name="start")
        self.most_at_once = self.maximum
        self._set(classify, name)
        self._limit = float(self.start)
        self._running = 0
        self._step: Step = "first window"
        self._is_climbing = True
        self._before = (self._limit, 0.0, 0.0)  # the step: the limit, the throughput and the latency
        self._descent_from = (self._limit, 0.0, 0.0)  # the limit before it, its latency, and the error of that
        self._least_latency = inf
        self._held = 0
        self._is_descent_next = True
        self._cut_at = -inf
        self._before_cuts = self._limit
        self._goal = 0.0  # of the slow start
        self._has_succeeded = True  # a call since the last cut
        self._ended_at = 0.0
        self._window = _Window(0.0, 0)

    @property
    def limit(self) -> int:
        """The number of calls that may run at once now."""
        return int(self._limit)

    def delay(self, now: float, weight: float) -> float:  # noqa: ARG002 - all calls are alike
        """0.0 below the limit; else not before a call ends."""
        return 0.0 if self._running < int(self._limit) else inf

    def started(self, now: float, weight: float) -> None:  # noqa: ARG002
        """Count a running call."""
        if not self._running and (not self._window.calls or now >= self._ended_at + MIN_SECONDS):
            self._window = _Window(now, 0)  # a pause is not a low throughput
        self._running += 1
        self._window.peak = max(self._window.peak, self._running)

    def ended(self, now: float, seconds: float, outcome: Outcome, weight: float) -> None:  # noqa: ARG002
        """Measure, and move the limit."""
        self._running = max(0, self._running - 1)
        self._ended_at = now
        if outcome.kind in {"throttled", "overload"}:
            self._back_off(now, now - seconds)
        elif outcome.kind != "cancelled" and seconds > 0:
            self._succeeded(now, seconds)
            window = self._window
            window.add(now, seconds)
            if window.has_latency(now) if self._step == "descent" else window.is_over(now, self._limit):
                self._least_latency = min(self._least_latency * AGEING, window.latency + window.error)
                self._decide(window, window.throughput(now))
                self._window = _Window(now, self._running)

    def _decide(self, window: _Window, throughput: float) -> None:
        match self._step:
            case "up":
                self._judge_step_up(window, throughput)
            case "descent":
                self._judge_descent(window)
            case "first window" | "none":
                self._next_step(window, throughput)

    def _judge_step_up(self, window: _Window, throughput: float) -> None:
        limit, before, latency = self._before
        step = self._limit / limit - 1
        if throughput >= before * (1 + GAIN * step) and not self._has_queue(window):
            self._next_step(window, throughput)
        elif self._is_climbing and throughput < before * (1 + NO_GAIN * step) and limit > 1:
            self._begin_descent(limit, latency, 0.0)
        else:
            self._hold(max(limit, min(self._limit, self._calls_of(throughput))))

    def _next_step(self, window: _Window, throughput: float) -> None:
        if self._held:
            self._held -= 1
        elif self._limit > 1 and self._is_descent_due:
            self._is_descent_next = False
            self._begin_descent(self._limit, window.latency, window.error)
        elif window.peak >= USED * self._limit:
            self._is_descent_next = True
            if not self._is_climbing and self._has_queue(window):
                self._hold(self._limit)
            else:
                factor = CLIMB if self._is_climbing else PROBE
                self._step_up(min(self.maximum, max(self._limit * factor, self._limit + 1)), window, throughput)

    @property
    def _is_descent_due(self) -> bool:
        """Whether the limit is to halve next: in turn with steps up, or because there is no room for the first one."""
        if self._is_climbing:
            return self._step == "first window" and self._limit * PROBE > self.maximum
        return self._is_descent_next

    def _judge_descent(self, window: _Window) -> None:
        _, _, before = self._before
        least = min(before, window.latency + window.error)
        if least < FALLEN * before and self._limit > 1:
            self._descend(self._limit, window.latency)
            return
        limit, latency, error = self._descent_from
        if least < latency - error:
            limit = max(self._limit, ceil(limit * least / latency - ROUNDING))
        self._hold(limit)

    def _begin_descent(self, limit: float, latency: float, error: float) -> None:
        self._is_climbing = False
        self._descent_from = limit, latency, error
        self._descend(limit, latency)

    def _descend(self, limit: float, latency: float) -> None:
        self._before = limit, 0.0, latency
        self._step, self._limit = "descent", max(1.0, limit / CLIMB)

    def _step_up(self, limit: float, window: _Window, throughput: float) -> None:
        if limit == self._limit:
            self._hold(limit)
        else:
            self._before = self._limit, throughput, window.latency
            self._step, self._limit = "up", limit

    def _hold(self, limit: float) -> None:
        self._is_climbing = False
        self._step, self._limit, self._held = "none", limit, HELD_WINDOWS

    def _has_queue(self, window: _Window) -> bool:
        """Whether calls wait in the service. No step up is worth it then, even if it takes from other processes."""
        return window.latency - window.error > QUEUE * self._least_latency

    def _calls_of(self, throughput: float) -> float:
        return ceil(min(throughput * self._least_latency, self.maximum) - ROUNDING)

    def _succeeded(self, now: float, seconds: float) -> None:
        """The service is up, unless this short call is one that an outage found half-way."""
        if now - seconds >= self._cut_at or seconds >= SECONDS_PER_CUT:
            self._has_succeeded = True
        if self._limit < self._goal:
            self._limit = min(self._goal, self._limit + 1)

    def _back_off(self, now: float, started: float) -> None:
        if started < self._cut_at or now < self._cut_at + SECONDS_PER_CUT:
            return
        if self._has_succeeded:
            self._before_cuts, self._goal = self._limit, 0.0
        else:
            self._goal = self._before_cuts
        self._cut_at, self._has_succeeded = now, False
        self._hold(max(1.0, self._limit * CUT))
        self._window = _Window(now, self._running)

    def may_forget(self, now: float) -> bool:
        """Whether no call has ended for ten minutes."""
        return now >= self._ended_at + FORGOTTEN_AFTER
