"""The gate `AdaptiveCapacity`: as many calls at once as raise the throughput."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any

from .._core.checks import check_callable, check_int, check_optional_name
from .._core.gate import Classify, Gate, Outcome

__all__ = ["AdaptiveCapacity"]

FIRST_FACTOR = 2.0  # until a step up gains too little
FACTOR = 1.25
GAIN = 0.5  # of a step that the throughput must gain
LOSS = 0.05  # of the throughput that a step down may cost
HELD_WINDOWS = 8
CUT = 0.7
SECONDS_PER_CUT = 1.0
MIN_SECONDS, LATENCIES, MIN_CALLS = 1.0, 4.0, 20  # of a window
FORGOTTEN_AFTER = 600.0  # seconds
USED = 0.5  # of the limit, so that a step up makes sense


class AdaptiveCapacity(Gate):
    """Finds the number of calls at once at which more of them no longer raise the throughput.

    It climbs: the limit rises, at first by 2 x and after a disappointment by 1.25 x, while each step raises the
    throughput by at least half as much as the limit. If it does not, the limit goes one step back and stays there for
    8 windows. Then it tries one step less, which it keeps if the throughput stays, and then one more. Calls that are
    throttled or overload cut the limit to 0.7 x, at most once a second. It rises only if at least half of it is used.

    If no call succeeds between two cuts, the service is down, and not overloaded by this operator. Calls of less than a
    second that started before the first of them do not count. When calls succeed again, each raises the limit by 1, up
    to where it was before the first of these cuts: the slow start of TCP.

    A window takes 1 s, 4 x the mean latency, and 20 + 2 x the limit calls, whichever is longest. The throughput
    decides, and not the latency, because a batch of records does not care about 50 ms: unlike with Gradient2 and AIMD,
    the limit rises to the top in front of a service that is only far away.

    Operators that share it share the limit: it counts the calls of all of them. `capacity=(8, 200)` is a short form of
    it, for one operator.

    Args:
        start: The first limit, 1 or more.
        maximum: The upper limit, at least `start`. The operator's `capacity` must be at least as high.
        classify: exception -> `Outcome` or its kind. None (the default): see "overload" in the documentation.
        name: Gates of one name share their state in one process; see `Gate`. None (the default): it is not shared.

    Raises:
        TypeError, ValueError: An argument is out of its range.

    Example:
        ordered_wait(urls, fetch, timeout=10.0, capacity=200, gate=AdaptiveCapacity(8, 200))
    """

    def __init__(
        self, start: int = 8, maximum: int = 200, *, classify: Classify | None = None, name: str | None = None
    ) -> None:
        self.start = check_int("start", start, at_least=1)
        self.maximum = check_int("maximum", maximum, at_least=self.start, limit_name="start")
        self.classify = None if classify is None else check_callable("classify", classify)
        self.name = check_optional_name(name)
        self._limit = float(self.start)
        self._running = 0
        self._factor = FIRST_FACTOR
        self._step = 0  # 1: the limit has been raised, -1: lowered, 0: held
        self._before = (self._limit, 0.0)  # the limit before the step, and its throughput
        self._held = 0
        self._next_probe = -1
        self._cut_at = -inf
        self._before_cuts = self._limit
        self._goal = 0.0  # of the slow start
        self._has_succeeded = True  # a call since the last cut
        self._ended_at = 0.0
        self._peak = 0
        self._begin_window(0.0)

    @property
    def limit(self) -> int:
        """The number of calls that may run at once now."""
        return int(self._limit)

    def delay(self, now: float, weight: float) -> float:  # noqa: ARG002 - all calls are alike
        """0.0 below the limit; else not before a call ends."""
        return 0.0 if self._running < int(self._limit) else inf

    def started(self, now: float, weight: float) -> None:  # noqa: ARG002
        """Count a running call."""
        if not self._running and (not self._calls or now >= self._ended_at + MIN_SECONDS):
            self._begin_window(now)  # a pause is not a low throughput
        self._running += 1
        self._peak = max(self._peak, self._running)

    def ended(self, now: float, seconds: float, outcome: Outcome, weight: float) -> None:  # noqa: ARG002
        """Measure, and move the limit."""
        self._running = max(0, self._running - 1)
        self._ended_at = now
        if outcome.kind in {"throttled", "overload"}:
            self._back_off(now, now - seconds)
        elif outcome.kind != "cancelled":
            self._succeed(now, seconds)
            if self._limit < self._goal:
                self._limit = min(self._goal, self._limit + 1)
            self._calls += 1
            self._latencies += seconds
            if self._is_window_over(now):
                self._decide(self._calls / (now - self._since))
                self._begin_window(now)

    def _succeed(self, now: float, seconds: float) -> None:
        """The service is up, unless this short call is one that an outage found half-way."""
        if now - seconds >= self._cut_at or seconds >= SECONDS_PER_CUT:
            self._has_succeeded = True

    def _is_window_over(self, now: float) -> bool:
        mean = self._latencies / self._calls
        return self._calls >= MIN_CALLS + 2 * self._limit and now - self._since >= max(MIN_SECONDS, LATENCIES * mean)

    def _decide(self, throughput: float) -> None:
        limit, before = self._before
        is_used = self._peak >= USED * self._limit
        if self._step > 0 and throughput < before * (1 + GAIN * (self._limit / limit - 1)):
            self._factor = FACTOR
            self._hold(limit)
        elif self._step < 0:
            self._hold(limit if throughput < before * (1 - LOSS) else self._limit)
        elif self._step == 0 and self._held:
            self._held -= 1
        elif self._step == 0 and self._next_probe < 0 and self._factor == FACTOR:
            self._next_probe = 1
            self._move(-1, max(1.0, self._limit / FACTOR), throughput)
        elif is_used:
            self._next_probe = -1
            self._move(1, min(self.maximum, max(self._limit * self._factor, self._limit + 1)), throughput)

    def _move(self, step: int, limit: float, throughput: float) -> None:
        if limit == self._limit:
            self._factor = FACTOR
            self._hold(limit)
            return
        self._before = self._limit, throughput
        self._step, self._limit = step, limit

    def _hold(self, limit: float) -> None:
        self._step, self._limit, self._held = 0, limit, HELD_WINDOWS

    def _back_off(self, now: float, started: float) -> None:
        if started < self._cut_at or now < self._cut_at + SECONDS_PER_CUT:
            return
        if self._has_succeeded:
            self._before_cuts, self._goal = self._limit, 0.0
        else:
            self._goal = self._before_cuts
        self._cut_at, self._has_succeeded = now, False
        self._factor = FACTOR
        self._hold(max(1.0, self._limit * CUT))
        self._begin_window(now)

    def _begin_window(self, now: float) -> None:
        self._since = now
        self._calls = 0
        self._latencies = 0.0
        self._peak = self._running

    def may_forget(self, now: float) -> bool:
        """Whether no call has ended for ten minutes."""
        return now >= self._ended_at + FORGOTTEN_AFTER

    def configuration(self) -> dict[str, Any]:
        """Both limits, as given."""
        return {"start": self.start, "maximum": self.maximum}

    def __reduce__(self) -> tuple[Callable[..., AdaptiveCapacity], tuple[()]]:
        return partial(AdaptiveCapacity, **self.configuration(), classify=self.classify, name=self.name), ()
