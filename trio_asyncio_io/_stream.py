"""The doors: ordered_wait, unordered_wait and keyed_wait."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Generic, TypeVar, Unpack

from trio.lowlevel import enable_ki_protection

from ._core.describe import describe
from ._core.options import OptionsArguments
from ._function import Function
from ._operator import AsyncWaitOperator, Source
from ._results import Results

__all__ = ["keyed_wait", "ordered_wait", "unordered_wait"]

T = TypeVar("T")
R = TypeVar("R")


def ordered_wait(
    source: Source, function: Function[T, R], *, timeout: float, **options: Unpack[OptionsArguments]
) -> AbstractAsyncContextManager[Results[R]]:
    """The function's results, in the order of the source (Flink's `AsyncDataStream.orderedWait`).

    **Emits when** the oldest element that is not out yet is done.
    **Backpressures when** `buffer` records are accepted and not yet received: the source is not read.
    **Completes when** the source has ended and all of it has come out.
    **Fails when** an element fails and `on_error` is "raise", or the source or the block raises; see
    `AsyncWaitOperator`.
    **Cancellation** reaches every invocation; `results.snapshot()` holds what had no chance.

    Args:
        source: An iterable, an async iterable or a receive channel. It is read as the buffer has room, one
            element ahead at most, and never closed. A bare value comes out as its bare result, a
            `StreamRecord` as a `StreamRecord` with its timestamp, a `Watermark` as itself, in its place.
        function: An async callable, value -> result, or an `AsyncFunction`.
        timeout: Seconds from the start of an invocation to its result, all attempts and backoffs included;
            not negative, `math.inf` for none. Required.
        options: `capacity=100`, `buffer=None`, `retry=None`, `on_timeout=None`, `on_error="raise"`,
            `flatten=False`, `restore=None` and `observer=None`; see `Options`.

    Returns:
        An async context manager that gives the `Results`: a receive channel with `snapshot()` and
        `statistics()`. Leaving the block cancels what still runs, which is no error.

    Raises:
        TypeError, ValueError: An argument is out of its range; the message names it and its value.

    Example:
        async with ordered_wait(range(1000), fetch, capacity=100, timeout=5.0) as results:
            async for result in results:
                print(result)
    """
    return _ResultsOf(source, function, mode="ordered", timeout=timeout, **options)


def unordered_wait(
    source: Source, function: Function[T, R], *, timeout: float, **options: Unpack[OptionsArguments]
) -> AbstractAsyncContextManager[Results[R]]:
    """The function's results, each as soon as it is there (Flink's `AsyncDataStream.unorderedWait`).

    **Emits when** any element of the oldest segment is done. A segment is what lies between two watermarks,
    and nothing ever crosses one. All else is as in `ordered_wait`.

    Args:
        source, function, timeout, options: As in `ordered_wait`.

    Returns:
        An async context manager that gives the `Results`.

    Raises:
        TypeError, ValueError: An argument is out of its range; the message names it and its value.

    Example:
        async with unordered_wait(urls, fetch, capacity=100, timeout=5.0, on_error="skip") as results:
            async for result in results:
                print(result)
    """
    return _ResultsOf(source, function, mode="unordered", timeout=timeout, **options)


def keyed_wait(
    source: Source,
    function: Function[T, R],
    *,
    key: Callable[[T], Hashable],
    timeout: float,
    **options: Unpack[OptionsArguments],
) -> AbstractAsyncContextManager[Results[R]]:
    """The function's results, in the order of the source for each key (Flink's FLIP-519).

    Two records of one key never run at once; different keys do not wait for each other.

    **Emits when** any element of the oldest segment is done; see `unordered_wait`. All else is as in
    `ordered_wait`. A record that waits for its key holds a place in the buffer, not a slot.

    Args:
        source, function, timeout, options: As in `ordered_wait`.
        key: value -> hashable: which records must keep their order. Called once for each record; what it
            raises is the source's failure.

    Returns:
        An async context manager that gives the `Results`.

    Raises:
        TypeError, ValueError: An argument is out of its range; the message names it and its value.

    Example:
        async with keyed_wait(events, post, key=lambda event: event.account, timeout=5.0) as results:
            async for result in results:
                print(result)
    """
    return _ResultsOf(source, function, mode="keyed", key=key, timeout=timeout, **options)


class _ResultsOf(AbstractAsyncContextManager[Results[R]], Generic[R]):
    """The operator around a block that sees nothing but its results."""

    def __init__(self, source: Source, function: Function[Any, R], **options: Any) -> None:
        if source is None:
            raise TypeError(f"the source must be an iterable or an async iterable, got {describe(source)}")
        self._operator: AsyncWaitOperator[Any, R] = AsyncWaitOperator(function, source=source, **options)

    @enable_ki_protection
    async def __aenter__(self) -> Results[R]:
        return (await self._operator.__aenter__()).output

    @enable_ki_protection
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        return await self._operator.__aexit__(kind, error, traceback)
