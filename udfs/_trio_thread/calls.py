"""Adapts the user's function of column values to the operator's function of rows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import trio

from trio_asyncio_io import AsyncFunction, RetryStrategy
from trio_asyncio_io.policies import from_cache

from .._sent.row import Failure, Row
from .._sent.settings import Settings
from .gates import gates_of
from .loads import Loads
from .row_observer import RowObserver

__all__ = ["RowCalls"]


class RowCalls(AsyncFunction[Row, Row]):
    """An operator's function: calls the user's function for a row and returns the row with its result.

    Args:
        function: The user's function, already opened.
        on_timeout: The user's handler, already opened, or None.
        settings: The settings of the UDF.

    Attributes:
        made: The number of calls of the user's function so far.
        loads: Measures the calls, if there are metrics; else None.
    """

    def __init__(self, function: Any, on_timeout: Any, settings: Settings) -> None:
        self._call: Callable[..., Awaitable[Any]] = getattr(function, "invoke", function)
        handler: Callable[..., Awaitable[Any]] | float | None = on_timeout or getattr(function, "timeout", None)
        handler = getattr(handler, "invoke", handler)
        # Many clients have an attribute `timeout` that is a number of seconds
        self._on_timeout = handler if callable(handler) else None
        self._settings = settings
        self._measures_time = settings.measures_time
        self._skips = settings.skips
        self.made = 0
        self.loads = Loads(settings.options.slots) if settings.has_metrics else None
        if callable(flush := getattr(function, "flush", None)):
            self.flush = flush  # the operator calls it if it exists

    def options(self) -> dict[str, Any]:
        """The arguments of the operator."""
        options = self._settings.options
        return {
            "mode": options.mode,
            "timeout": options.timeout,
            "capacity": options.slots,
            "gate": gates_of(self._settings),
            "yield_slot_after": options.yield_slot_after,
            "buffer": options.buffer,
            "key": options.key,
            "per_key": options.per_key,
            "retry": options.retry and _of_rows(options.retry),
            "observer": options.observer and RowObserver(options.observer),
            "on_timeout": self._timed_out if self._on_timeout else None,
            "on_error": "raise" if self._settings.on_error == "raise" else self._failed,
        }

    async def open(self) -> None:
        """Set the context variable that each call sets. Setting it again to the same value copies no context."""
        if self._measures_time:
            from_cache.set(False)

    def known(self, row: Row) -> tuple[Row] | None:
        """The row itself if no call is made for it, else None."""
        if row.failure is not None or self._skips(row):  # or an input value cannot be represented in Python
            return (row,)
        return None

    async def invoke(self, row: Row) -> Row:
        """Call the user's function for one row."""
        self.made += 1
        row.attempts += 1
        if self._measures_time:
            from_cache.set(False)
            if row.started is None:
                row.started = trio.current_time()
        if self.loads is None:
            row.result = await self._call(*row.inputs)
        else:
            row.result = await self.loads.measured(self._call, row.inputs)
        if self._measures_time:
            row.cached = from_cache.get()
            row.seconds = self._seconds(row)
        return row

    async def _timed_out(self, row: Row) -> Row:
        assert self._on_timeout is not None
        row.result = await self._on_timeout(*row.inputs)
        row.replaced = True
        row.seconds = self._seconds(row)
        return row

    async def _failed(self, row: Row, exception: Exception) -> Row:
        row.result = None
        row.failure = Failure(exception, row.attempts, self._seconds(row))
        return row

    def _seconds(self, row: Row) -> float:
        """Seconds since the first call started; 0.0 if the settings do not ask for times."""
        return 0.0 if row.started is None else trio.current_time() - row.started


def _of_rows(strategy: RetryStrategy) -> RetryStrategy:
    """The strategy with `retry_on_result` applied to the row's result."""
    predicate = strategy.retry_on_result
    if predicate is None:
        return strategy
    return replace(strategy, retry_on_result=lambda row: predicate(row.result))
