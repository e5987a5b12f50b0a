"""The invoker: carries out invocations, from the first call for an element to the element's results.

A worker puts a deadline around `call`. If `call` raises or the deadline expires, `rescue` runs in the same slot, with
timeouts of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from ._gatekeeper import Gatekeeper
from ._slots import Slots

__all__ = ["Invoker"]


class Invoker:
    """Carries out the invocations of one operator.

    Args:
        function: An object with an async `invoke`, and perhaps with `timeout` and `flush`.
        options: The operator's options.
        ledger: Counts retries, timeouts and failures.
        gates: Admits retries, and is notified of the end of each call; or None.
        slots: Takes the slot back during a long backoff, or None.

    Attributes:
        call: entry -> awaitable of the function's result, retries included.
        flatten: The function's result -> its outputs. None if a result is one output.
        notes: Adds notes to exceptions.
        flush: Calls the function's `flush`, if it has one and no other invocation will start for a while.
    """

    def __init__(
        self,
        function: Any,
        options: Options,
        ledger: Ledger,
        gates: Gatekeeper | None = None,
        slots: Slots | None = None,
    ) -> None:
        self._options = options
        self._ledger = ledger
        self._on_timeout: OnTimeout | None = options.on_timeout or _timeout_method(function)
        self.notes = Notes()
        self.call: Call = attempts_of(function, options, ledger, self.notes, gates=gates, slots=slots)
        self.flush: Callable[[], None] = flusher_of(function, ledger) or _do_nothing
        self.flatten: Callable[[Any], Sequence[Any]] | None = interruptible(_flattened) if options.flatten else None

    async def rescue(self, entry: Entry, error: Exception | None) -> Sequence[Any]:
        """The outputs of an element whose call raised `error`, or whose deadline expired if `error` is None.

        Raises:
            Exception: The element's own, or the one that `on_error` raised. Its note names the element.
        """
        if error is not None:
            self._ledger.fail(entry, error, trio.current_time())
            return await self._apply_policy(entry, error)
        self._ledger.time_out(entry, trio.current_time())
        try:
            return await self._replace_timed_out(entry)
        except Exception as final:  # noqa: BLE001 - on_timeout may raise anything
            self._ledger.fail_after_timeout(entry, final, trio.current_time())
            error = final
        return await self._apply_policy(entry, error)

    def fail_while_stopping(self, entry: Entry, error: Exception) -> Exception | None:
        """Record the error of a call that raised while the operator stopped. Returns it if it is fatal."""
        self._ledger.fail(entry, error, trio.current_time())
        return self._named(error, entry) if self._is_fatal(error) else None

    def _is_fatal(self, error: Exception) -> bool:
        return self._options.on_error == "raise" or isinstance(error, NotAsyncError)

    async def _apply_policy(self, entry: Entry, error: Exception) -> Sequence[Any]:
        if self._is_fatal(error):
            raise self._named(error, entry)
        match self._options.on_error:
            case "skip":
                self._ledger.skip()
            case "dead_letter":
                self._ledger.dead_letter(entry, error, trio.current_time())
            case _:
                return await self._replace_failed(entry, error)
        return ()

    async def _replace_timed_out(self, entry: Entry) -> Sequence[Any]:
        if self._on_timeout is None:
            raise self._timeout_error(entry, "the function gave no result")
        return await self._handled("on_timeout", entry, self._on_timeout, entry.value)

    async def _replace_failed(self, entry: Entry, error: Exception) -> Sequence[Any]:
        handler = cast(Callable[..., Any], self._options.on_error)
        try:
            return await self._handled("on_error", entry, handler, entry.value, error)
        except Exception as final:
            self._named(final, entry)
            raise

    async def _handled(self, name: str, entry: Entry, handler: Callable[..., Any], *arguments: Any) -> Sequence[Any]:
        with trio.move_on_after(self._options.timeout):
            result = await awaited(handler, *arguments)
            return (result,) if self.flatten is None else self.flatten(result)
        raise self._timeout_error(entry, f"{name} gave no result")

    def _timeout_error(self, entry: Entry, what: str) -> ElementTimeoutError:
        timeout = self._options.timeout
        return ElementTimeoutError(f"{what} for {describe(entry.value)} within its timeout of {timeout:g} s", timeout)

    def _named(self, error: Exception, entry: Entry) -> Exception:
        """The error, with a note that names the element and the attempt."""
        retry = self._options.retry
        limit = f" of {retry.max_retries + 1}" if retry else ""
        self.notes.add(error, f"element {entry.sequence}, {describe(entry.value)}, attempt {entry.attempts}{limit}")
        return error


def _timeout_method(function: object) -> OnTimeout | None:
    method = getattr(function, "timeout", None)
    return cast(OnTimeout, method) if callable(method) else None  # a client may have seconds under that name


def _do_nothing() -> None:
    pass


def _flattened(result: Any) -> Sequence[Any]:
    try:
        outputs = iter(result)
    except TypeError as error:
        raise TypeError(f"with flatten=True a result must be an iterable of outputs, got {describe(result)}") from error
    return tuple(outputs)
