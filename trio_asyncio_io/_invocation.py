"""The invocation: all that happens for one element, from its first call to its results.

The worker puts a deadline around `call`. What `call` raises, and a deadline that struck, goes to `rescue`,
which runs in the same slot under deadlines of its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from random import Random
from types import CoroutineType
from typing import Any, cast

import trio

from ._elements import describe
from ._errors import ElementTimeoutError, NotAsyncError
from ._function import awaitable_from
from ._options import OnTimeout, Options
from ._queue import Entry
from ._retry import RetryStrategy
from ._statistics import Counters

__all__ = ["Invocation"]


class Invocation:
    """How an operator makes results of an element; composed once from its options.

    Args:
        function: An object with an async `invoke`, and perhaps a `timeout`.
        options: The operator's options.
        counters: Where retries, timeouts and failures are counted.

    Attributes:
        call: entry -> awaitable of the function's result, retries included.
        outputs: The function's result -> the list of outputs.
    """

    def __init__(self, function: Any, options: Options, counters: Counters) -> None:
        self._options = options
        self._counters = counters
        self._on_timeout: OnTimeout | None = options.on_timeout or _timeout_method(function)
        self.call: Callable[[Entry], Awaitable[Any]] = _once(function.invoke)
        if options.retry is not None:
            self.call = _with_retries(self.call, options.retry, counters)
        self._raises = options.on_error == "raise"
        self.outputs: Callable[[Any], list[Any]] = _flattened if options.flatten else _single

    async def rescue(self, entry: Entry, error: Exception | None) -> list[Any]:
        """The outputs of an element whose call raised `error`, or None for one whose deadline struck.

        Raises:
            Exception: The element's own, if the options say so, or what `on_error` raised; with a note that
                names the element.
        """
        try:
            if error is None:
                return await self._timed_out(entry)
            self._counters.failed += 1
        except Exception as final:  # noqa: BLE001 - whatever on_timeout raised
            error = final
        if self.is_fatal(error):
            raise self.named(error, entry)
        on_error = self._options.on_error
        if not callable(on_error):  # "skip"
            self._counters.skipped += 1
            return []
        try:
            return await self._bounded("on_error", entry, on_error, entry.value, error)
        except Exception as final:
            self.named(final, entry)
            raise

    def is_fatal(self, error: Exception) -> bool:
        """Whether an element's error stops the operator, without `on_error` being asked."""
        return self._raises or isinstance(error, NotAsyncError)

    def named(self, error: Exception, entry: Entry) -> Exception:
        """The error, with a note of the element and the attempt."""
        retry = self._options.retry
        of = f" of {retry.max_retries + 1}" if retry else ""
        error.add_note(f"element {entry.sequence}, {describe(entry.value)}, attempt {entry.attempts}{of}")
        return error

    async def _timed_out(self, entry: Entry) -> list[Any]:
        self._counters.timed_out += 1
        if self._on_timeout is None:
            raise self._timeout_error(entry, "the function gave no result")
        return await self._bounded("on_timeout", entry, self._on_timeout, entry.value)

    async def _bounded(self, name: str, entry: Entry, handler: Callable[..., Any], *arguments: Any) -> list[Any]:
        with trio.move_on_after(self._options.timeout):
            return self.outputs(await awaitable_from(handler, *arguments))
        raise self._timeout_error(entry, f"{name} gave no result")

    def _timeout_error(self, entry: Entry, what: str) -> ElementTimeoutError:
        timeout = self._options.timeout
        return ElementTimeoutError(f"{what} for {describe(entry.value)} within its timeout of {timeout:g} s", timeout)


def _timeout_method(function: object) -> OnTimeout | None:
    method = getattr(function, "timeout", None)
    return cast(OnTimeout, method) if callable(method) else None  # a client may well have its seconds under that name


def _once(invoke: Callable[[Any], Awaitable[Any]]) -> Callable[[Entry], Awaitable[Any]]:
    def call(entry: Entry) -> Any:
        # Not `async def`: the function's own coroutine is what the worker awaits, with no frame in between.
        entry.attempts += 1
        awaitable = invoke(entry.value)
        if type(awaitable) is not CoroutineType and not isawaitable(awaitable):
            raise NotAsyncError.for_result(invoke, awaitable)
        return awaitable

    return call


def _with_retries(
    once: Callable[[Entry], Awaitable[Any]], strategy: RetryStrategy, counters: Counters
) -> Callable[[Entry], Awaitable[Any]]:
    random = Random()

    async def call(entry: Entry) -> Any:
        for attempt in range(1, strategy.max_retries + 1):
            try:
                result = await once(entry)
            except NotAsyncError:
                raise
            except Exception as error:
                if not strategy.retries_exception(error):
                    raise
            else:
                if not strategy.retries_result(result):
                    return result
            await trio.sleep(strategy.backoff(attempt, random.random()))
            counters.retried += 1
        return await once(entry)

    return call


def _single(result: Any) -> list[Any]:
    return [result]


def _flattened(result: Any) -> list[Any]:
    try:
        outputs = iter(result)
    except TypeError as error:
        raise TypeError(f"with flatten=True a result is an iterable of outputs, got {describe(result)}") from error
    return list(outputs)
