"""The operator around a source: ordered_wait, unordered_wait and keyed_wait.

The type of the outputs depends on the elements, `flatten` and `group`, with an overload for each combination.
`keyed_wait` and `AsyncWaitOperator` repeat them, because type checkers cannot add a keyword to overloads.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Generic, NoReturn, TypeVar, Unpack, overload

from .._core.elements import StreamRecord
from .._core.options import AllArguments, Options
from .._values.describe import describe, plural
from .._values.public import check_keywords, list_keywords, typed_as
from .function import Function, innermost
from .operator import AsyncWaitOperator
from .results import Results
from .signatures import (
    Flat,
    FlatFunction,
    FlatGroupFunction,
    FlatGroups,
    GroupFunction,
    Groups,
    Key,
    Marked,
    MarkedSource,
    Mixed,
    MixedSource,
    Running,
    Single,
    SingleMixed,
    Source,
    ValueOfFunction,
)
from .tasks import LINES_OF_RUN, uninterruptible

T = TypeVar("T")
R = TypeVar("R")

# Seconds. A function that takes this long on average without letting others run deserves a warning: at a latency of a
# second, no more than a hundred calls can overlap
BLOCKING_SECONDS = 0.01

_log = logging.getLogger("trio_asyncio_io")


@overload
def ordered_wait(  # pyright: ignore[reportOverlappingOverload]
    source: Source[ValueOfFunction], function: Function[Any, R], **options: Unpack[Single[Any, R]]
) -> Running[R, Any]: ...
@overload
def ordered_wait(
    source: MarkedSource[T], function: Function[T, R], **options: Unpack[Single[Marked[T], Marked[R]]]
) -> Running[Marked[R], StreamRecord[T]]: ...
@overload
def ordered_wait(source: Source[T], function: Function[T, R], **options: Unpack[Single[T, R]]) -> Running[R, T]: ...
@overload
def ordered_wait(
    source: Source[ValueOfFunction], function: FlatFunction[Any, R], **options: Unpack[Flat[Any, R]]
) -> Running[R, Any]: ...
@overload
def ordered_wait(
    source: MarkedSource[T], function: FlatFunction[T, R], **options: Unpack[Flat[Marked[T], Marked[R]]]
) -> Running[Marked[R], StreamRecord[T]]: ...
@overload
def ordered_wait(source: Source[T], function: FlatFunction[T, R], **options: Unpack[Flat[T, R]]) -> Running[R, T]: ...
@overload
def ordered_wait(
    source: Source[ValueOfFunction], function: GroupFunction[Any, R], **options: Unpack[Groups[Any, R]]
) -> Running[R, Any]: ...
@overload
def ordered_wait(
    source: MarkedSource[T], function: GroupFunction[T, R], **options: Unpack[Groups[Marked[T], Marked[R]]]
) -> Running[Marked[R], StreamRecord[T]]: ...
@overload
def ordered_wait(
    source: Source[T], function: GroupFunction[T, R], **options: Unpack[Groups[T, R]]
) -> Running[R, T]: ...
@overload
def ordered_wait(
    source: Source[ValueOfFunction], function: FlatGroupFunction[Any, R], **options: Unpack[FlatGroups[Any, R]]
) -> Running[R, Any]: ...
@overload
def ordered_wait(
    source: MarkedSource[T], function: FlatGroupFunction[T, R], **options: Unpack[FlatGroups[Marked[T], Marked[R]]]
) -> Running[Marked[R], StreamRecord[T]]: ...
@overload
def ordered_wait(
    source: Source[T], function: FlatGroupFunction[T, R], **options: Unpack[FlatGroups[T, R]]
) -> Running[R, T]: ...
@overload
def ordered_wait(
    source: MixedSource[T], function: Function[T, R], **options: Unpack[SingleMixed]
) -> Running[Mixed[R], T | StreamRecord[T]]: ...
@list_keywords(AllArguments, Options)
def ordered_wait(
    source: Source[Any],
    function: Function[Any, Any],
    *surplus: Any,
    timeout: float,
    **options: Unpack[AllArguments],
) -> AbstractAsyncContextManager[Results[Any]]:
    """Call a function for each element and emit the results in source order (Flink's `orderedWait`).

    A bare value comes out as its bare result, a `StreamRecord` as a `StreamRecord` with its timestamp, a `Watermark` as
    itself, in its place.

    Semantics:
        * **Emits** when the oldest element that was not emitted yet has its results.
        * **Backpressures** when `buffer` records are accepted and not yet received: the source is not read.
        * **Completes** when the source has ended and all outputs have been received.
        * **Fails** when an element fails and `on_error` is "raise", or when the source or the block raises. The
          exception comes out of the block as itself; see `AsyncWaitOperator`.
        * **Cancels** every invocation when it is cancelled. `results.snapshot()` holds every element that was not
          received.

    Args:
        source: An iterable, an async iterable or a Trio receive channel. It is read while the buffer has room, one
            element ahead at most, and never closed.
        function: An async callable, value -> result, or an `AsyncFunction`.
        And the other arguments, as for `Options`.

    Returns:
        An async context manager for the `Results`, a receive channel with `snapshot()` and `statistics()`. Leaving the
        block early cancels the running invocations and is not an error.

    Raises:
        TypeError, ValueError: An argument is invalid. The message names it and its value.

    Example:
        async with ordered_wait(range(1000), fetch, capacity=100, timeout=5.0) as results:
            async for result in results:
                print(result)
    """
    return _results_of(ordered_wait, source, function, surplus, options, timeout=timeout)


@typed_as(ordered_wait)
@list_keywords(AllArguments, ordered_wait)
def unordered_wait(
    source: Source[Any],
    function: Function[Any, Any],
    *surplus: Any,
    timeout: float,
    **options: Unpack[AllArguments],
) -> AbstractAsyncContextManager[Results[Any]]:
    """Call a function for each element and emit each result when it is available (Flink's `unorderedWait`).

    No record crosses a watermark: the records between two watermarks form a segment, and only the oldest segment emits.

    Semantics:
        * **Emits** when any element of the oldest segment has its results.
        * **Backpressures**, **completes**, **fails** and **cancels** as `ordered_wait`.

    Args:
        The same as for `ordered_wait`.

    Returns:
        An async context manager for the `Results`.

    Raises:
        TypeError, ValueError: An argument is invalid. The message names it and its value.

    Example:
        async with unordered_wait(urls, fetch, timeout=5.0, on_error="skip") as results:
            async for result in results:
                print(result)
    """
    return _results_of(unordered_wait, source, function, surplus, options, mode="unordered", timeout=timeout)


@overload
def keyed_wait(  # pyright: ignore[reportOverlappingOverload]
    source: Source[ValueOfFunction], function: Function[Any, R], *, key: Key[Any], **options: Unpack[Single[Any, R]]
) -> Running[R, Any]: ...
@overload
def keyed_wait(
    source: MarkedSource[T], function: Function[T, R], *, key: Key[T], **options: Unpack[Single[Marked[T], Marked[R]]]
) -> Running[Marked[R], StreamRecord[T]]: ...
@overload
def keyed_wait(
    source: Source[T], function: Function[T, R], *, key: Key[T], **options: Unpack[Single[T, R]]
) -> Running[R, T]: ...
@overload
def keyed_wait(
    source: Source[ValueOfFunction], function: FlatFunction[Any, R], *, key: Key[Any], **options: Unpack[Flat[Any, R]]
) -> Running[R, Any]: ...
@overload
def keyed_wait(
    source: MarkedSource[T], function: FlatFunction[T, R], *, key: Key[T], **options: Unpack[Flat[Marked[T], Marked[R]]]
) -> Running[Marked[R], StreamRecord[T]]: ...
@overload
def keyed_wait(
    source: Source[T], function: FlatFunction[T, R], *, key: Key[T], **options: Unpack[Flat[T, R]]
) -> Running[R, T]: ...
@overload
def keyed_wait(
    source: Source[ValueOfFunction],
    function: GroupFunction[Any, R],
    *,
    key: Key[Any],
    **options: Unpack[Groups[Any, R]],
) -> Running[R, Any]: ...
@overload
def keyed_wait(
    source: MarkedSource[T],
    function: GroupFunction[T, R],
    *,
    key: Key[T],
    **options: Unpack[Groups[Marked[T], Marked[R]]],
) -> Running[Marked[R], StreamRecord[T]]: ...
@overload
def keyed_wait(
    source: Source[T], function: GroupFunction[T, R], *, key: Key[T], **options: Unpack[Groups[T, R]]
) -> Running[R, T]: ...
@overload
def keyed_wait(
    source: Source[ValueOfFunction],
    function: FlatGroupFunction[Any, R],
    *,
    key: Key[Any],
    **options: Unpack[FlatGroups[Any, R]],
) -> Running[R, Any]: ...
@overload
def keyed_wait(
    source: MarkedSource[T],
    function: FlatGroupFunction[T, R],
    *,
    key: Key[T],
    **options: Unpack[FlatGroups[Marked[T], Marked[R]]],
) -> Running[Marked[R], StreamRecord[T]]: ...
@overload
def keyed_wait(
    source: Source[T], function: FlatGroupFunction[T, R], *, key: Key[T], **options: Unpack[FlatGroups[T, R]]
) -> Running[R, T]: ...
@overload
def keyed_wait(
    source: MixedSource[T], function: Function[T, R], *, key: Key[T], **options: Unpack[SingleMixed]
) -> Running[Mixed[R], T | StreamRecord[T]]: ...
@list_keywords(AllArguments, ordered_wait)
def keyed_wait(
    source: Source[Any],
    function: Function[Any, Any],
    *surplus: Any,
    key: Key[Any],
    timeout: float,
    **options: Unpack[AllArguments],
) -> AbstractAsyncContextManager[Results[Any]]:
    """Call a function for each element and emit the results in source order per key (Flink's FLIP-519).

    At most one record of a key runs at once. Records with different keys do not wait for each other.

    Semantics:
        * **Emits** when any element of the oldest segment has its results, as in `unordered_wait`.
        * **Backpressures** as `ordered_wait`. A record that waits for its key occupies a place in the buffer, but no
          slot.
        * **Completes**, **fails** and **cancels** as `ordered_wait`.

    Args:
        The same as for `ordered_wait`, and:
        key: value -> hashable. Records with equal keys keep their order. Called once per record. An exception that it
            raises counts as raised by the source.

    Returns:
        An async context manager for the `Results`.

    Raises:
        TypeError, ValueError: An argument is invalid. The message names it and its value.

    Example:
        by_account = attrgetter("account")
        async with keyed_wait(events, post, key=by_account, timeout=5.0) as results:
            async for result in results:
                print(result)
    """
    return _results_of(keyed_wait, source, function, surplus, options, mode="keyed", key=key, timeout=timeout)


def _results_of(
    caller: Callable[..., Any],
    source: Source[Any],
    function: Function[Any, Any],
    surplus: tuple[Any, ...],
    options: Mapping[str, Any],
    **own: Any,
) -> _ResultsOf[Any]:
    """The operator, after a check of the arguments that Python would refuse without advice."""
    name = caller.__name__
    if source is None:  # for `AsyncWaitOperator`, that means that the caller puts
        raise TypeError(f"the source must be an iterable or an async iterable, got {describe(source)}")
    if _is_dataframe_of(source, "pyspark"):
        raise TypeError(f"the source is a Spark DataFrame: import {name} from udfs, not from trio_asyncio_io")
    if _is_dataframe_of(source, "pandas", "polars"):
        raise TypeError(
            "the source is a DataFrame, which iterates over its columns: give its rows, such as df.itertuples() of "
            "pandas or df.iter_rows() of polars"
        )
    if surplus:
        number = plural(len(surplus), "more positional argument")
        raise TypeError(f"{name} takes a source and a function, got {number}: give the options by keyword")
    check_keywords(caller, options)
    return _ResultsOf(AsyncWaitOperator(function, source=source, **own, **options), function)


def _is_dataframe_of(source: object, *packages: str) -> bool:
    """Whether the source is a DataFrame of one of these packages, without importing them."""
    bases = type(source).__mro__
    return any(each.__name__ == "DataFrame" and each.__module__.partition(".")[0] in packages for each in bases)


@uninterruptible
class _ResultsOf(AbstractAsyncContextManager[Results[R]], Generic[R]):
    """An operator whose block sees only the results."""

    def __init__(self, operator: AsyncWaitOperator[Any, R], function: object) -> None:
        self._operator = operator
        self._function = function

    async def __aenter__(self) -> Results[R]:
        return (await self._operator.__aenter__()).output

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        try:
            is_handled = await self._operator.__aexit__(kind, error, traceback)
        finally:
            del error, traceback  # no cycle of the exception and this frame
        self._warn_of_blocking()
        return is_handled

    def _warn_of_blocking(self) -> None:
        """Log a warning if the function blocked the loop. Its line is known only to a `BlockedLoop`, which logs it."""
        totals, lines = self._operator.totals(), LINES_OF_RUN.get()
        if lines is not None and lines.has_reported:
            return
        if totals.blocked < BLOCKING_SECONDS * totals.calls:
            return
        if totals.explain().limit == "blocking":
            _log.warning(
                "%s blocked the Trio loop for %.0f ms in each call, so the calls ran one after another. Await an async "
                "client instead, or run the blocking code in threads with trio_asyncio_io.adapters.in_thread. To see "
                "the line that blocks, use trio.run(main, instruments=[trio_asyncio_io.blocking.BlockedLoop()])",
                describe(innermost(self._function)),
                1e3 * totals.blocked / totals.calls,
            )

    def _refuse(self, *_: object) -> NoReturn:
        raise TypeError(
            "enter the operator first: `async with ordered_wait(...) as results:`, then `async for result in results:`"
        )

    __enter__ = __exit__ = __iter__ = __aiter__ = __await__ = _refuse
