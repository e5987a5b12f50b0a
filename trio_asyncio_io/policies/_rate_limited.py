"""The policy `rate_limited`: calls start no faster than a service allows."""

from __future__ import annotations

import math
from typing import Any, TypeVar

import trio

from .._core.arrival import arrival_after
from .._core.checks import check_int, check_number
from ._policy import Policy, Wrapped
from ._run_change import RunChange

__all__ = ["rate_limited"]

R = TypeVar("R")


class rate_limited(Policy[R]):  # noqa: N801 - used like a function
    """A function whose calls start at most `rate` times per second. Calls that come too early wait.

    In every span of w seconds, wherever it begins,

        calls that start <= burst + rate * w

    Calls start in the order in which they arrive. The limit is a token bucket of `burst` tokens, stored as one instant:
    the theoretical arrival time of the generic cell rate algorithm (ITU-T I.371). Idle time saves up to `burst` calls.
    With `burst=1`, a call that the scheduler resumes late delays the calls behind it by as much. A larger burst absorbs
    such delays, which matter from some hundred calls per second on.

    The limit holds for this object, in one operator or several. In a later Trio run, which has another clock, it
    continues as if no time had passed. It does not depend on how long the calls take: the operator's `capacity` limits
    how many run at once. Waiting counts towards the operator's `timeout`, so keep `capacity / rate` well below that.

    Args:
        function: An async callable or an `AsyncFunction`.
        rate: Calls per second, above 0 and finite.
        burst: Upper limit of calls that start at once after an idle time, at least 1.

    Cancellation: a call that waits leaves at once, and the next one takes its start.

    Raises:
        TypeError, ValueError: `rate` or `burst` is out of its range.

    Example:
        lookup = rate_limited(fetch, 50.0, burst=5)
    """

    def __init__(self, function: Wrapped[R], rate: float, *, burst: int = 1) -> None:
        super().__init__(function, rate=rate, burst=burst)
        self._rate = check_number(
            "rate",
            rate,
            "calls per second, above 0 and finite",
            lambda number: 0 < number < math.inf,
            kind="calls per second as a number",
        )
        self._burst = check_int("burst", burst, at_least=1)
        self._theoretical_arrival = -math.inf
        self._arrival_after_last_start = 0.0  # seconds from the last start to the theoretical arrival
        self._lock = trio.StrictFIFOLock()
        self._run_change = RunChange()

    async def invoke(self, *arguments: Any) -> R:
        """The result of a call that starts at its earliest start."""
        if self._run_change.has_happened():
            self._continue_in_new_run()
        async with self._lock:
            await trio.sleep_until(self._theoretical_arrival - (self._burst - 1) / self._rate)
            now = trio.current_time()
            self._theoretical_arrival = arrival_after(max(self._theoretical_arrival, now), 1.0, self._rate)
            self._arrival_after_last_start = self._theoretical_arrival - now
        result: R = await self._call(*arguments)
        return result

    def _continue_in_new_run(self) -> None:
        # The time since the last start is unknown, because the clocks of two runs cannot be compared
        self._theoretical_arrival = trio.current_time() + self._arrival_after_last_start
        self._lock = trio.StrictFIFOLock()
