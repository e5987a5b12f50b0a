"""The invocation: all that happens for one element, from its first call to its results.

The worker puts a deadline around `call`. What `call` raises, and a deadline that struck, goes to `rescue`,
which runs in the same slot under deadlines of its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

import trio

from ._attempts import Call, attempts_of, flusher_of
from ._boundary import awaited, interruptible
from ._core.describe import describe
from ._core.ledger import Ledger
from ._core.notes import Notes
from ._core.options import OnTimeout, Options
from ._core.queue import Entry
from ._errors import ElementTimeoutError, NotAsyncError

__all__ = ["Invocation"]


class Invocation:
    """How an operator makes results of an element; composed once from its options.

    Args:
        function: An object with an async `invoke`, and perhaps a `timeout` and a `flush`.
        options: The operator's options.
        ledger: Where retries, timeouts and failures are written down.

    Attributes:
        call: entry -> awaitable of the function's result, retries included.
        outputs: The function's result -> the outputs.
        notes: What the operator adds to exceptions.
        flush: Tell the function that nobody else will come for a while, if that is so and it wants to know.
    """

    def __init__(self, function: Any, options: Options, ledger: Ledger) -> None:
        self._options = options
        self._ledger = ledger
        self._on_timeout: OnTimeout | None = options.on_timeout or _timeout_method(function)
        self.notes = Notes()
        self.call: Call = attempts_of(function, options, ledger, self.notes)
        self.flush: Callable[[], None] = flusher_of(function, ledger) or _do_nothing
        self._raises = options.on_error == "raise"
        self._policy: Callable[[Entry, Exception], Awaitable[Sequence[Any]]] = {
            "raise": self._raise,
            "skip": self._skip,
            "dead_letter": self._bury,
        }.get(cast(Any, options.on_error), self._ask)
        self.outputs: Callable[[Any], Sequence[Any]] = interruptible(_flattened) if options.flatten else _single

    async def rescue(self, entry: Entry, error: Exception | None) -> Sequence[Any]:
        """The outputs of an element whose call raised `error`, or None for one whose deadline struck.

        Raises:
            Exception: The element's own, if the options say so, or what `on_error` raised; with a note that
                names the element.
        """
        if error is not None:
            self._ledger.counters.failed += 1
        else:
            try:
                return await self._timed_out(entry)
            except Exception as final:  # noqa: BLE001 - whatever on_timeout raised
                error = final
        self._ledger.fail(entry, error, trio.current_time())
        return await (self._raise if isinstance(error, NotAsyncError) else self._policy)(entry, error)

    def failed_while_stopping(self, entry: Entry, error: Exception) -> Exception | None:
        """Note that a call raised when nobody asked for its result any more; the error, if it would have stopped us."""
        self._ledger.counters.failed += 1
        self._ledger.fail(entry, error, trio.current_time())
        return self._named(error, entry) if self._raises or isinstance(error, NotAsyncError) else None

    async def _raise(self, entry: Entry, error: Exception) -> Sequence[Any]:
        raise self._named(error, entry)

    async def _skip(self, entry: Entry, error: Exception) -> Sequence[Any]:  # noqa: ARG002 - a policy gets both
        self._ledger.counters.skipped += 1
        return []

    async def _bury(self, entry: Entry, error: Exception) -> Sequence[Any]:
        self._ledger.bury(entry, error, trio.current_time())
        return []

    async def _ask(self, entry: Entry, error: Exception) -> Sequence[Any]:
        try:
            return await self._bounded("on_error", entry, cast(Any, self._options.on_error), entry.value, error)
        except Exception as final:
            self._named(final, entry)
            raise

    def _named(self, error: Exception, entry: Entry) -> Exception:
        """The error, with a note of the element and the attempt."""
        retry = self._options.retry
        of = f" of {retry.max_retries + 1}" if retry else ""
        self.notes.add(error, f"element {entry.sequence}, {describe(entry.value)}, attempt {entry.attempts}{of}")
        return error

    async def _timed_out(self, entry: Entry) -> Sequence[Any]:
        self._ledger.time_out(entry, trio.current_time())
        if self._on_timeout is None:
            raise self._timeout_error(entry, "the function gave no result")
        return await self._bounded("on_timeout", entry, self._on_timeout, entry.value)

    async def _bounded(self, name: str, entry: Entry, handler: Callable[..., Any], *arguments: Any) -> Sequence[Any]:
        with trio.move_on_after(self._options.timeout):
            return self.outputs(await awaited(handler, *arguments))
        raise self._timeout_error(entry, f"{name} gave no result")

    def _timeout_error(self, entry: Entry, what: str) -> ElementTimeoutError:
        timeout = self._options.timeout
        return ElementTimeoutError(f"{what} for {describe(entry.value)} within its timeout of {timeout:g} s", timeout)


def _timeout_method(function: object) -> OnTimeout | None:
    method = getattr(function, "timeout", None)
    return cast(OnTimeout, method) if callable(method) else None  # a client may well have its seconds under that name


def _do_nothing() -> None:
    pass


def _single(result: Any) -> Sequence[Any]:
    # No list: the garbage collector looks at those each time, and thousands of done elements may wait for their turn
    return (result,)


def _flattened(result: Any) -> Sequence[Any]:
    try:
        outputs = iter(result)
    except TypeError as error:
        raise TypeError(f"with flatten=True a result is an iterable of outputs, got {describe(result)}") from error
    return tuple(outputs)
