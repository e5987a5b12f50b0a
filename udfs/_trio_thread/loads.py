"""Loads: how long calls take when few and when many run at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import trio

from trio_asyncio_io import Totals

__all__ = ["Loads"]


class Loads:
    """Measures calls. The load of a call is the number that run when it starts or when it returns, if that is higher.

    Args:
        capacity: Upper limit of the load.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._running = 0
        self._low = (0, 0.0)
        self._high = (0, 0.0)

    async def measured(self, call: Callable[..., Awaitable[Any]], inputs: Sequence[Any]) -> Any:
        """The result of the call. A call that raises does not count."""
        self._running += 1
        load, started = self._running, trio.current_time()
        try:
            result = await call(*inputs)
            self._add(max(load, self._running), trio.current_time() - started)
        finally:
            self._running -= 1
        return result

    def put_into(self, totals: Totals) -> Totals:
        """The totals with these numbers."""
        (low_calls, low_latency), (high_calls, high_latency) = self._low, self._high
        return replace(
            totals, low_calls=low_calls, low_latency=low_latency, high_calls=high_calls, high_latency=high_latency
        )

    def _add(self, load: int, seconds: float) -> None:
        if 4 * load <= self._capacity:
            self._low = (self._low[0] + 1, self._low[1] + seconds)
        elif 2 * load > self._capacity:
            self._high = (self._high[0] + 1, self._high[1] + seconds)
