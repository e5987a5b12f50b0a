"""Calls: let the operator, which has rows, use functions, handlers and observers, which take column values."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import fields, replace
from functools import partial
from inspect import getmembers, isawaitable, isfunction
from types import CoroutineType
from typing import Any

import numpy as np
import pyarrow as pa
import trio

from trio_asyncio_io import AsyncFunction, NotAsyncError, Observer, RetryStrategy
from trio_asyncio_io.gates import Gate
from trio_asyncio_io.integration import KnowsOutputs, is_async, name_of, usage_of_all
from trio_asyncio_io.policies import from_cache
from trio_asyncio_io.report import Report

from .._sent.arrow_types import to_pylist
from .._sent.row import Failure, Row, inputs_of
from .._sent.settings import Settings
from .gates import gates_of
from .room import Room

# Methods of a pandas.Series, which a pandas UDF gets, that no value of a row has
OF_SERIES = frozenset({"apply", "astype", "dt", "fillna", "iloc", "isna", "isnull", "map", "notna", "str", "tolist"})
NO_SERIES = "the function is called for each row with its values, not with a pandas.Series"

NANOSECONDS = (np.dtype("datetime64[ns]"), np.dtype("timedelta64[ns]"))


class Calls(AsyncFunction[Any, Any], KnowsOutputs):
    """An operator's function: calls the user's function for rows, and returns them with their results.

    Args:
        function: The user's function, already opened.
        on_timeout: The user's handler, already opened, or None.
        settings: The settings of the UDF.
        room: Counts the rows that end.

    Attributes:
        made: The number of calls of the user's function so far.
        begun: The rows that these calls were made for, each as often as it was called, and those without a call.
    """

    def __init__(self, function: Any, on_timeout: Any, settings: Settings, room: Room) -> None:
        self.made = 0
        self.begun = 0
        self._settings = settings
        self._call = self._checked(getattr(function, "invoke", function))
        handler: Callable[..., Awaitable[Any]] | float | None = (
            getattr(function, "timeout", None) if on_timeout is None else on_timeout
        )
        handler = getattr(handler, "invoke", handler)
        # Many clients have an attribute `timeout` that is a number of seconds
        self._on_timeout = self._checked(handler) if callable(handler) else None
        self._handler_name = name_of(handler)
        self._end_row = room.end
        self._current_time = trio.lowlevel.current_clock().current_time  # `trio.current_time` looks it up each time
        self._measures_time = settings.measures_time
        self._has_usage = settings.metadata is not None
        self._skips = settings.skips

    def _checked(self, function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
        """The function; if it is not declared async, with a check that a call returns an awaitable."""
        if is_async(function):
            return function

        def call(*inputs: Any) -> Awaitable[Any]:
            result = function(*inputs)
            if isawaitable(result):
                return result
            raise NotAsyncError.for_result(name_of(function), result, shows_value=self._settings.show_values)

        return call

    def options(self, limits: Sequence[Gate] = ()) -> dict[str, Any]:
        """The arguments of the operator.

        Args:
            limits: The task's gates of the cluster's limits.
        """
        options, on_error = self._settings.options, self._settings.on_error
        observer = options.observer
        return {each.name: getattr(options, each.name) for each in fields(options)} | {
            "gate": gates_of(self._settings, limits),
            "retry": options.retry and _of_rows(options.retry),
            "observer": observer if observer is None or isinstance(observer, Report) else RowObserver(observer),
            "on_timeout": None if self._on_timeout is None else _named(self._handler_name, self._timed_out),
            "on_error": on_error if on_error == "raise" else _named(on_error, self._failed),
        }

    def known(self, row: Row) -> tuple[Row] | None:
        """The row itself if no call is made for it, else None."""
        if row.failure is not None or self._skips(row):  # or an input value cannot be represented in Python
            self.begun += 1
            self._end_row(None)
            return (row,)
        return None

    def _called(self, rows: Sequence[Row], inputs: Sequence[Any]) -> Awaitable[Any]:
        """Begin the call for these rows. Returns what to wait for."""
        self.made += 1
        self.begun += len(rows)
        for row in rows:
            row.attempts += 1
            if self._measures_time and row.started is None:
                row.started = self._current_time()
        return self._call_with_usage(rows, inputs) if self._has_usage else self._call(*inputs)

    async def _call_with_usage(self, rows: Sequence[Row], inputs: Sequence[Any]) -> Any:
        try:
            return await self._call(*inputs)
        finally:
            if (found := usage_of_all(self._settings.budget_name)) is not None:
                for row in rows:  # an equal part for each
                    estimated, settled = row.weights or (0.0, 0.0)
                    row.weights = estimated + found[0] / len(rows), settled + found[1] / len(rows)

    def _ended(self, row: Row, result: Any) -> Row:
        """The row with its result."""
        self._check_result(result)
        row.result = result
        self._end_row(result)
        if self._measures_time:
            row.cached = from_cache.get()
            row.seconds = self._seconds(row)
        return row

    def _check_result(self, result: Any, name: str | None = None) -> None:
        """Check that a result is not a coroutine. `name`: of the handler that returned it."""
        if type(result) is CoroutineType:
            raise NotAsyncError.for_coroutine(name or self._settings.function.name, result)

    async def _timed_out(self, row: Row) -> Row:
        assert self._on_timeout is not None
        row.result = await self._on_timeout(*row.own_inputs())
        self._check_result(row.result, "on_timeout")
        self._end_row(row.result)
        row.replaced = True
        row.seconds = self._seconds(row)
        return row

    async def _failed(self, row: Row, exception: Exception) -> Row:
        row.result = None
        self._end_row(None)
        row.failure = Failure(exception, row.attempts, self._seconds(row))
        return row

    def _seconds(self, row: Row) -> float:
        """Seconds since the first call started; 0.0 where no column reports times."""
        return 0.0 if row.started is None else self._current_time() - row.started


class RowCalls(Calls):
    """Calls the user's function with the values of a row."""

    async def invoke(self, row: Row) -> Row:
        """Call the user's function for one row."""
        inputs = row.own_inputs()
        try:
            result = await self._called((row,), inputs)
        except AttributeError as error:
            if error.name in OF_SERIES and any(error.obj is each for each in inputs):
                error.add_note(NO_SERIES)
            raise
        return self._ended(row, result)


class GroupCalls(Calls):
    """Calls the user's function with a list for each input column, for an operator with the option `group`."""

    async def invoke(self, rows: list[Row]) -> Any:
        """Call the user's function for several rows. A row whose result is an exception is replaced by it."""
        columns = [list(column) for column in zip(*(row.own_inputs() for row in rows), strict=True)]
        results = as_list(await self._called(rows, columns))
        self._check_result(results)
        if not isinstance(results, list | tuple) or len(results) != len(rows):
            return results  # which the operator refuses
        return [
            result if isinstance(result, Exception) else self._ended(row, result)
            for row, result in zip(rows, results, strict=True)
        ]


def as_list(results: Any) -> Any:
    """The results of a group as a list, if they are a NumPy array, a pandas Series or an Arrow array; else themselves.

    Each is Python values, except for the rows of an array with several dimensions, which are arrays. Maps of Arrow are
    dicts. Missing values of pandas are None, as in Spark's pandas UDFs, and so are masked values of NumPy. NaN in a
    NumPy array stays NaN.
    """
    if isinstance(results, pa.Array | pa.ChunkedArray):
        return to_pylist(results)
    if hasattr(results, "notna") and hasattr(results, "tolist"):  # pandas takes long to import
        return results.astype(object).where(results.notna(), None).tolist()
    if isinstance(results, np.ndarray) and results.ndim:
        if results.ndim > 1:
            return list(results)
        # NumPy would return times in nanoseconds as integers
        return to_pylist(pa.array(results)) if results.dtype in NANOSECONDS else results.tolist()
    return results


def _named(name: str, handler: Callable[..., Awaitable[Row]]) -> Callable[..., Awaitable[Row]]:
    """The handler, with the name of the user's function for reports."""
    named = partial(handler)
    vars(named)["__qualname__"] = name
    return named


def _of_rows(strategy: RetryStrategy) -> RetryStrategy:
    """The strategy with `retry_on_result` applied to the row's result."""
    predicate = strategy.retry_on_result
    if predicate is None:
        return strategy
    return replace(strategy, retry_on_result=lambda row: predicate(row.result))


class RowObserver(Observer):
    """Calls the hooks of the user's observer with the tuple of the row's input values as the element.

    A hook that the observer does not override does nothing.
    """

    def __init__(self, observer: Observer) -> None:
        for name, empty in getmembers(Observer, isfunction):
            hook = getattr(observer, name)
            if getattr(hook, "__func__", None) is not empty:
                has_row = not name.startswith(("run_", "grouped", "watermark_"))
                setattr(self, name, _with_inputs(hook) if has_row else hook)


def _with_inputs(hook: Callable[..., None]) -> Callable[..., None]:
    def report(sequence: int, element: Any, *details: Any) -> None:
        hook(sequence, inputs_of(element), *details)

    return report
