"""The rate limit: calls start no faster than a service allows."""

from __future__ import annotations

import math
from typing import Any, TypeVar

import trio

from .._core.checks import check_int, check_number
from ._policy import Policy, Wrapped
from ._run import RunChange

__all__ = ["rate_limited"]

R = TypeVar("R")


class rate_limited(Policy[R]):  # noqa: N801 - used like a function
    """A function whose calls start at most `rate` times a second; those that come too early wait.

    In every span of w seconds, wherever it begins,

        calls that start <= burst + rate * w

    Callers start in the order in which they came. It is a token bucket of `burst` tokens, kept as one instant: the
    theoretical arrival time of the generic cell rate algorithm (ITU-T I.371). Time in which nobody came is saved up to
    `burst` calls and no more. With `burst=1` a caller that the scheduler wakes late puts off those behind it by as
    much; a larger burst absorbs that, which matters from some hundred calls a second on.

    It limits the calls of this object, in one operator or several. In a later Trio run, which has another clock, it
    goes on as if no time had passed. How long the calls take does not matter here: the operator's `capacity` limits
    how many run at once. Waiting counts in the operator's `timeout`, so keep `capacity / rate` well below that.

    Args:
        function: An async callable or an `AsyncFunction`.
        rate: Calls per second, above 0 and finite.
        burst: Most calls that start at once after a lull, at least 1.

    Cancellation: a caller that waits just leaves, and its turn is that of the next one.

    Raises:
        TypeError, ValueError: `rate` or `burst` is out of its range.

    Example:
        lookup = rate_limited(fetch, 50.0, burst=5)
    """

    def __init__(self, function: Wrapped[R], rate: float, *, burst: int = 1) -> None:
        super().__init__(function, rate=rate, burst=burst)
        self._rate = _calls_per_second(rate)
        self._burst = check_int("burst", burst, at_least=1)
        self._arrival = -math.inf  # when the bucket is full again, less one call
        self._until_full = 0.0  # seconds from the last start to `_arrival`
        self._line = trio.StrictFIFOLock()
        self._run_change = RunChange()

    async def invoke(self, *arguments: Any) -> R:
        """The result of a call that starts when its turn has come."""
        if self._run_change.has_happened():
            self._continue_in_new_run()
        with self._on_the_way():
            async with self._line:
                await trio.sleep_until(self._arrival - (self._burst - 1) / self._rate)
                now = trio.current_time()
                self._arrival = max(self._arrival, now) + 1 / self._rate
                self._until_full = self._arrival - now
        result: R = await self._call(*arguments)
        return result

    def _continue_in_new_run(self) -> None:
        # How long ago the last call started is unknown: the clocks of two runs cannot be compared.
        self._arrival = trio.current_time() + self._until_full
        self._line = trio.StrictFIFOLock()


def _calls_per_second(rate: object) -> float:
    return check_number(
        "rate",
        rate,
        "calls per second, above 0 and finite",
        lambda rate: 0 < rate < math.inf,
        kind="calls per second as a number",
    )
