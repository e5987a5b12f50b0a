"""The policy `hedged`: a second call for an element whose first one is slow.

hedged            the policy: whether a second call may be made, and when
Race              the calls for one element, of which the first result counts
Alarms            one task that starts the second calls
RecentLatencies   the percentile after which a call is slow
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from itertools import count
from math import inf
from re import fullmatch
from typing import Any, Final, ParamSpec, TypeVar

import trio
from trio.lowlevel import enable_ki_protection

from .._core.reading import outcome_of
from .._operator.calls import Worker, operator_of_call, worker_of_call
from .._operator.errors import NotAsyncError, flatten, is_cancelled, split
from .._values.checks import check_number
from .._values.describe import describe
from ._policy import Policy, RunChange, Wrapped, by_position

P = ParamSpec("P")
R = TypeVar("R")

MIN_SECONDS: Final = 0.01
MAX_SAVED: Final = 10.0
SECONDS_AFTER_THROTTLE: Final = 10.0
SHARE_OF_DEADLINE: Final = 0.75
ROUNDING: Final = 1e-9  # ten deposits of 0.1 are a little less than 1, and equal latencies differ by as little


class hedged(Policy[P, R]):  # noqa: N801 - used like a function
    """A function that is called a second time if the first call is slow. The first result counts.

    The function must be idempotent: for one element, two calls may run simultaneously. (Dean and Barroso, "The Tail at
    Scale", 2013.)

    The second call starts `after` the first one, or immediately if the first one raises. It is not made

    * if the budget is used up;
    * in the last quarter of the time from the start of the first call to its deadline;
    * if a gate of the operator does not admit it immediately, or holds back another call;
    * within 10 s after a call was throttled, as `gates` define it.

    When one call has returned, the other one is cancelled. The result counts once that has unwound. If both calls
    raise, the exception of the first one counts. Both calls for an element share its slot, so up to twice the
    operator's `capacity` may run at once.

    A call that several elements share, as in `single_flight(hedged(f))`, has neither their deadlines nor their gates.

    The operator's `Statistics` count the second calls of its elements, and `summary` shows them.

    Args:
        function: An async callable or an `AsyncFunction`.
        after: Seconds from the start of the first call to that of the second, above 0. Or "p1" to "p99": that
            percentile of the last 1,000 times from a first call to its element's result, at least 10 ms; with fewer
            than 50 results, there is no second call. The default is "p95".
        budget: Second calls per first call, above 0 and finite. Each first call adds `budget` to an account and each
            second call takes 1 from it. The account is empty at first and holds at most 10.

    Attributes:
        calls: Calls made.
        extra_calls: Second calls made. They are included in `calls`.
        won: Results that second calls gave.

    Raises:
        TypeError, ValueError: An argument is out of its range.

    Cancellation: both calls for the element are cancelled and unwind. If one returns or raises nevertheless, that
    counts. What one has raised before does not count: at its deadline, the element times out.

    Example:
        async with ordered_wait(codes, hedged(fetch), timeout=5.0) as results:
            ...
    """

    def __init__(self, function: Wrapped[P, R], *, after: float | str = "p95", budget: float = 0.1) -> None:
        super().__init__(function, after=after, budget=budget)
        self._seconds, self._percent = _checked_after(after)
        self._budget = check_number("budget", budget, "above 0 and finite", lambda number: 0 < number < inf)
        self.calls = 0
        self.extra_calls = 0
        self.won = 0
        self._saved = 0.0
        self._latencies = RecentLatencies()
        self._throttled_until = -inf
        self._run_change = RunChange()
        self._alarms = Alarms()

    @enable_ki_protection
    async def invoke(self, *arguments: P.args, **keywords: P.kwargs) -> R:
        """The result of the first call that returns."""
        values = by_position(self, arguments, keywords) if keywords else arguments
        if self._run_change.has_happened():
            self._throttled_until = -inf
            self._alarms = Alarms()
        self._saved = min(self._saved + self._budget, MAX_SAVED)
        started = trio.current_time()
        call = partial(self._watched_call, values)
        seconds = self._latencies.percentile(self._percent) if self._percent else self._seconds
        if seconds is None:
            result: R = await call()
        else:
            worker = worker_of_call()
            race = Race(call, started + seconds, partial(self._admit_extra, started, worker), self._alarms)
            try:
                result = await race.run()
            except BaseException:
                _lose_first(race, worker)
                raise
            if race.is_won_by_second:
                self.won += 1
                if (operator := operator_of_call()) is not None:
                    operator.ledger.win_hedge()
                _lose_first(race, worker)
        if self._percent:
            # Not the latency of the call that won: slow calls lose, so the percentile would fall more and more
            self._latencies.add(trio.current_time() - started)
        return result

    async def _close(self) -> None:
        await self._alarms.end_if_unused()
        await super()._close()

    async def _watched_call(self, arguments: tuple[Any, ...]) -> R:
        self.calls += 1
        try:
            result: R = await self._call(*arguments)
        except Exception as error:
            if outcome_of(error).kind == "throttled":
                self._throttled_until = trio.current_time() + SECONDS_AFTER_THROTTLE
            raise
        return result

    def _admit_extra(self, started: float, worker: Worker | None) -> AbstractContextManager[object] | None:
        """Count a second call, and return its context. None: it may not be made."""
        now = trio.current_time()
        deadline = min(inf if worker is None else worker.deadline(), trio.current_effective_deadline())
        is_late = now > started + SHARE_OF_DEADLINE * (deadline - started)
        if is_late or self._saved < 1 - ROUNDING or now < self._throttled_until:
            return None
        context = nullcontext() if worker is None else worker.admit_extra()
        if context is not None:
            self._saved -= 1
            self.extra_calls += 1
            if (operator := operator_of_call()) is not None:
                operator.ledger.hedge()
        return context


def _lose_first(race: Race, worker: Worker | None) -> None:
    """Report the end of a first call that gives no outcome."""
    # Not a local of `invoke`: its frame can be reached from the traceback, and would be in a cycle with the exception
    error = race.take_error()
    if worker is not None and (error is not None or race.is_won_by_second):
        worker.lose(error)


def _checked_after(after: float | str) -> tuple[float, int]:
    """`after` as (seconds, 0) or (0.0, percentile)."""
    legal = 'seconds above 0, or a percentile from "p1" to "p99"'
    if not isinstance(after, str):
        return check_number("after", after, legal, lambda number: 0 < number < inf), 0
    percent = fullmatch("p([1-9][0-9]?)", after)
    if percent is None:
        raise ValueError(f"after must be {legal}, got {describe(after)}")
    return 0.0, int(percent[1])


@dataclass(eq=False, slots=True)
class Alarm:
    """A function that `Alarms` calls at an instant. None: the alarm was cancelled, or the function has begun."""

    function: Callable[[], None] | None


class Alarms:
    """Calls functions at their instants. One task does so for all calls of a policy, while there are any alarms."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Alarm]] = []  # by instant
        self._numbers = count()
        self._sleep: trio.CancelScope
        self._has_ended: trio.Event

    def set(self, at: float, function: Callable[[], None]) -> Alarm:
        """Call the function at this instant, in the context of a system task.

        To cancel the alarm, clear its function. The function must do so, too, because the task may keep the alarm for
        a while.
        """
        if not self._heap:
            self._sleep = trio.CancelScope(deadline=at)
            self._has_ended = trio.Event()
            trio.lowlevel.spawn_system_task(self._run, self._heap, self._has_ended, name="trio_asyncio_io hedges")
        elif at < self._sleep.deadline:
            self._sleep.deadline = at
        alarm = Alarm(function)
        heappush(self._heap, (at, next(self._numbers), alarm))
        while self._heap[0][2].function is None:  # so that the heap is about as long as there are calls
            heappop(self._heap)
        return alarm

    async def end_if_unused(self) -> None:
        """End the task, unless there are alarms. Another task serves those that are set later."""
        if self._heap and all(alarm.function is None for _, _, alarm in self._heap):
            self._heap.clear()
            self._heap = []
            self._sleep.cancel()
            with trio.CancelScope(shield=True):  # short, because the task only returns
                await self._has_ended.wait()

    async def _run(self, heap: list[tuple[float, int, Alarm]], has_ended: trio.Event) -> None:
        try:
            while heap:
                with self._sleep:
                    await trio.sleep_forever()
                now = trio.current_time()
                while heap and (heap[0][2].function is None or heap[0][0] <= now):
                    _, _, alarm = heappop(heap)
                    if alarm.function is not None:
                        alarm.function()
                if heap:
                    self._sleep = trio.CancelScope(deadline=heap[0][0])
        finally:
            has_ended.set()


@dataclass(eq=False, slots=True)
class Race:
    """A first call, and a second one if the first is slow or raises. The first result counts.

    Args:
        call: Makes a call.
        at: When the second call starts. If the first one raises before that, the second starts immediately.
        admit: Returns the context of the second call. None: there is no second call.
        alarms: Those of the policy.

    Attributes:
        is_won_by_second: Whether the second call gave the result.
    """

    call: Callable[[], Awaitable[Any]]
    at: float
    admit: Callable[[], AbstractContextManager[object] | None]
    alarms: Alarms
    is_won_by_second: bool = field(default=False, init=False)
    _alarm: Alarm | None = field(init=False)
    _result: tuple[Any] | None = field(default=None, init=False)
    _first_error: Exception | None = field(default=None, init=False)
    _second_error: Exception | None = field(default=None, init=False)
    _has_failed_late: bool = field(default=False, init=False)
    _context: Context = field(default_factory=copy_context, init=False)
    _nursery: trio.Nursery = field(init=False)

    def __post_init__(self) -> None:
        self._alarm = self.alarms.set(self.at, self._start_second)

    async def run(self) -> Any:
        """The first result, when the other call has unwound. The first call is made in the present task.

        Call it immediately after the creation.

        Raises:
            Exception: The exception of the first call. The second one, if any, has raised, too.

        Cancellation: both calls are cancelled and unwind. If one returns or raises nevertheless, that counts. What one
        has raised before does not.
        """
        stopped: BaseException | None = None
        try:
            async with trio.open_nursery() as self._nursery:
                await self._run_first()
        except BaseException as raised:  # noqa: BLE001 - it is raised below, unless there is an outcome
            # A nursery makes a group of a single exception, too
            stopped = raised if len(flatten(raised)) > 1 else flatten(raised)[0]
        second_error, self._second_error = self._second_error, None  # no cycle of the exception and this object
        is_interrupted = stopped is not None and split(stopped, is_cancelled)[1] is not None
        if self._result is not None and not is_interrupted:
            return self._result[0]
        error = stopped
        if stopped is None or (self._has_failed_late and not is_interrupted):
            error = second_error if self._first_error is None else self.take_error()
        assert error is not None
        try:
            raise error
        finally:
            del error, second_error, stopped  # no cycle of an exception and this frame

    def take_error(self) -> Exception | None:
        """The exception of the first call, unless `run` has raised it. None: the call was cancelled. Call it once."""
        error, self._first_error = self._first_error, None  # no cycle of the exception and this object
        return error

    def _start_second(self) -> None:
        self._cancel_alarm()
        self._context.run(self._nursery.start_soon, self._run_second)

    def _cancel_alarm(self) -> None:
        """The nursery may close now."""
        if self._alarm is not None:
            self._alarm.function = None
            self._alarm = None

    async def _run_first(self) -> None:
        try:
            self._end(await self.call())
        except Exception as error:  # noqa: BLE001 - `run` raises it
            self._first_error = error
            self._fail(error)
        finally:
            self._cancel_alarm()

    @enable_ki_protection
    async def _run_second(self) -> None:
        await trio.lowlevel.checkpoint_if_cancelled()  # no second call while a cancelled one unwinds
        context = self.admit()
        if context is None:
            return
        try:
            with context:
                result = await self.call()
        except Exception as error:  # noqa: BLE001 - `run` raises it, or the error of the first call
            self._second_error = error
            self._fail(error)
        else:
            self.is_won_by_second = self._result is None
            self._end(result)

    def _end(self, result: Any) -> None:
        if self._result is None:
            self._result = (result,)
        if self._nursery.child_tasks:
            self._nursery.cancel_scope.cancel()

    def _fail(self, error: Exception) -> None:
        self._has_failed_late |= trio.current_effective_deadline() == -inf
        if isinstance(error, NotAsyncError):
            self._nursery.cancel_scope.cancel()
        elif self._alarm is not None:
            self._start_second()


MAX_SAMPLES: Final = 1000
MIN_SAMPLES: Final = 50


@dataclass(eq=False, slots=True)
class RecentLatencies:
    """The latencies of the last 1,000 successes."""

    _by_age: deque[float] = field(default_factory=deque)
    _sorted: list[float] = field(default_factory=list)

    def add(self, seconds: float) -> None:
        """Count a success."""
        if len(self._by_age) == MAX_SAMPLES:
            del self._sorted[bisect_left(self._sorted, self._by_age.popleft())]
        self._by_age.append(seconds)
        insort(self._sorted, seconds)

    def percentile(self, percent: int) -> float | None:
        """The latency at this percentile, at least 10 ms. None: there are fewer than 50 latencies."""
        count = len(self._sorted)
        if count < MIN_SAMPLES:
            return None
        return max(self._sorted[-(-count * percent // 100) - 1] + ROUNDING, MIN_SECONDS)
