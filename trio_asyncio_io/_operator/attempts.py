"""Attempts: one call of the function for an element, and what replaces its result if there is none.

A worker makes one attempt at a time, under the element's deadline. If the last one raises, or the element times out,
`rescue` runs in the same slot, with timeouts of its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from inspect import signature
from math import inf
from types import CoroutineType
from typing import Any, TypeAlias, TypeVar, cast

import trio
from trio.lowlevel import enable_ki_protection

from .._core.gate import CURRENT_CALL, RefusedError
from .._core.ledger import Ledger
from .._core.options import OnTimeout, Options
from .._core.queue import Entry
from .._core.retry import Retries
from .._values.describe import describe, plural
from .._values.exceptions import add_note
from .errors import AttemptTimeoutError, ElementTimeoutError, NotAsyncError, needs_asyncio
from .function import Wrapper, awaitable_from, checked_awaitable, name_of
from .gates import Gates
from .tasks import awaited, interruptible

R = TypeVar("R")

Call: TypeAlias = Callable[[Entry], Awaitable[Any]]

FROM_ASYNCIO = (
    "the function uses asyncio, and the operator runs on Trio: "
    "give trio_asyncio_io.adapters.from_asyncio(function), or use Trio's own functions"
)
ONE_ARGUMENT = "the function gets one argument, the element: declare one parameter, and unpack a tuple inside"


class Invoker:
    """Carries out the invocations of one operator.

    Args:
        function: An object with an async `invoke`, and perhaps with `timeout`.
        options: The operator's options.
        ledger: Counts retries, timeouts and failures.
        gates: Those whose weights the calls can settle, or None.

    Attributes:
        call: entry -> awaitable of the function's result, for one attempt. The caller is open to interrupts.
        retries: Decides whether another attempt follows.
        flatten: The function's result -> its outputs. None if a result is one output.
    """

    def __init__(self, function: Any, options: Options, ledger: Ledger, gates: Gates | None) -> None:
        self._options = options
        self._ledger = ledger
        self._name = name_of(function)
        self._invoke = function.invoke
        # Not `or`: a handler with a `__len__` may be false
        self._on_timeout: OnTimeout | None = (
            _timeout_method(function) if options.on_timeout is None else options.on_timeout
        )
        self.retries = Retries(
            options.retry, options.capacity, guard=interruptible, on_denied=self._deny_retry, is_final=_is_final
        )
        self.call = self._call(function, gates)
        self.flatten: Callable[[Any], Sequence[Any]] | None = interruptible(_flattened) if options.flatten else None

    def _call(self, function: Any, gates: Gates | None) -> Call:
        """One attempt. Each layer is a function around a function, and exists only if an option needs it."""
        call = (
            _once(function.invoke)
            if self._options.group is None
            else _grouped(function.invoke, self._ledger, self.check_result)
        )
        if gates is not None and gates.is_weighted:
            call = _settled(call, gates)
        retry = self._options.retry
        if retry is not None and retry.attempt_timeout < inf:
            call = _timed(partial(awaited, call), retry.attempt_timeout, self._options.timeout, self.retries)
        return call

    def _deny_retry(self, error: Exception | None) -> None:
        self._ledger.deny_retry()
        if error is not None:
            add_note(error, "it was not retried: the operator's retry budget is used up")

    def check_result(self, result: Any) -> None:
        """Check that the result of a record is not a coroutine, which nothing would await.

        Raises:
            NotAsyncError: It is one. The message names the missing `await`.
        """
        if type(result) is CoroutineType:
            raise NotAsyncError.for_coroutine(self._name, result)

    def end(self, entry: Entry, error: Exception | None) -> None:
        """Record that an element has failed with `error`, or timed out if that is None."""
        if error is None:
            self._ledger.time_out(entry, trio.current_time())
        else:
            if needs_asyncio(error):
                add_note(error, FROM_ASYNCIO)
            elif isinstance(error, TypeError) and not _takes_one(self._invoke):
                add_note(error, ONE_ARGUMENT)
            self._ledger.fail(entry, error, trio.current_time())

    async def replace(
        self, entry: Entry, error: Exception | None, cause: Exception | None
    ) -> Sequence[Any] | Exception:
        """Replace the result of an element that has failed with `error`, or timed out if that is None, after `end`.

        Args:
            cause: The cause of a timeout: the error of the last attempt, if the next one could not begin before the
                deadline; or what the function raised while the deadline cancelled it.

        Returns:
            The outputs, or the exception that stops the operator. It is not raised: its traceback would lead to frames
            that refer to it.
        """
        if error is not None:
            return await self._apply_policy(entry, error)
        outcome = await self._replace_timed_out(entry, cause)
        try:
            if not isinstance(outcome, Exception):
                return outcome
            self._ledger.fail_after_timeout(entry, outcome, trio.current_time())
            return await self._apply_policy(entry, outcome)
        finally:
            del outcome  # no cycle of the exception and this frame

    def name_group(self, error: Exception, records: Sequence[Entry]) -> None:
        """Add a note that the function was called for a group."""
        number, first = len(records), records[0]
        add_note(
            error,
            f"the call was for a group of {number} record{'s' if number > 1 else ''}, the first is element "
            f"{first.sequence}, {describe(first.value)}: with group= the function gets a list",
        )

    def named(self, error: Exception, entry: Entry) -> Exception:
        """The error, with a note that names the element and the attempt."""
        retry = self._options.retry
        limit = f" of {retry.max_retries + 1}" if retry and not self._options.group_split else ""
        attempt = f"attempt {entry.attempts}{limit}" if entry.attempts else "before its first attempt"
        add_note(error, f"element {entry.sequence}, {describe(entry.value)}, {attempt}")
        return error

    def is_fatal(self, error: Exception) -> bool:
        """Whether this error of a record stops the operator."""
        return self._options.on_error == "raise" or isinstance(error, NotAsyncError) or needs_asyncio(error)

    async def _apply_policy(self, entry: Entry, error: Exception) -> Sequence[Any] | Exception:
        if self.is_fatal(error):
            return error
        match self._options.on_error:
            case "skip":
                self._ledger.skip()
            case "dead_letter":
                self._ledger.dead_letter(entry, error, trio.current_time())
            case handler:
                return await self._handled("on_error", entry, cast(Any, handler), entry.value, error)
        return ()

    async def _replace_timed_out(self, entry: Entry, cause: Exception | None) -> Sequence[Any] | Exception:
        if self._on_timeout is None:
            is_due = trio.current_time() >= entry.since + self._options.timeout
            what = "the function gave no result" if is_due else "no other attempt could begin"
            return self._timeout_error(entry, what, cause)
        return await self._handled("on_timeout", entry, self._on_timeout, entry.value)

    async def _handled(
        self, name: str, entry: Entry, handler: Callable[..., Any], *arguments: Any
    ) -> Sequence[Any] | Exception:
        """The outputs of a handler, or what it has raised."""
        try:
            found = await _within(self._options.timeout, self._outputs_of_handler, name, handler, *arguments)
        except Exception as error:  # noqa: BLE001 - the user's handler may raise anything
            return error
        return found[0] if isinstance(found, tuple) else self._timeout_error(entry, f"{name} gave no result", found)

    async def _outputs_of_handler(self, name: str, handler: Callable[..., Any], *arguments: Any) -> Sequence[Any]:
        """The outputs of a handler. A note of what it raises names it."""
        try:
            result = await awaited(handler, *arguments)
        except Exception as error:
            if error is not arguments[-1]:
                add_note(error, f"raised by {name}")
            raise
        if type(result) is CoroutineType:
            raise NotAsyncError.for_coroutine(name, result)
        return (result,) if self.flatten is None else self.flatten(result)

    def _timeout_error(self, entry: Entry, what: str, cause: Exception | None) -> ElementTimeoutError:
        timeout = self._options.timeout
        error = ElementTimeoutError(f"{what} for {describe(entry.value)} within its timeout of {timeout:g} s", timeout)
        error.__cause__ = cause
        return error


async def _within(seconds: float, call: Callable[..., Awaitable[R]], *arguments: Any) -> tuple[R] | Exception | None:
    """The result of a call, or what it raised when it was cancelled after these seconds, or None.

    A nursery in the call raises a group of the cancellation and of the errors that its tasks raised meanwhile.
    """
    scope = trio.move_on_after(seconds)
    try:
        with scope:
            return (await call(*arguments),)
    except Exception as error:
        if not scope.cancelled_caught:
            raise
        return error
    return None


def _once(invoke: Callable[[Any], Awaitable[Any]]) -> Call:
    def call(entry: Entry) -> Awaitable[Any]:
        entry.attempts += 1
        awaitable = invoke(entry.value)
        return awaitable if type(awaitable) is CoroutineType else checked_awaitable(invoke, awaitable)

    return call


def _grouped(invoke: Callable[[Any], Awaitable[Any]], ledger: Ledger, check_result: Callable[[Any], None]) -> Call:
    """A call for the records of a group, with a list of its own. Its result has been checked."""

    async def call(group: Entry) -> Sequence[Any]:
        for entry in (group, *group.records):
            entry.attempts += 1
        ledger.count_group(group)
        results = await awaitable_from(invoke, list(group.value))
        check_result(results)
        return _as_many(results, group.size)

    return call


@enable_ki_protection
def _as_many(results: Any, number: int) -> Sequence[Any]:
    values = plural(number, "value")
    if not isinstance(results, list | tuple):
        raise TypeError(f"with group= the function must return a list of results, got {describe(results)} for {values}")
    if len(results) != number:
        got = plural(len(results), "result")
        raise ValueError(f"with group= the function must return one result for each value, got {got} for {values}")
    return results


def _takes_one(invoke: Callable[..., Any]) -> bool:
    """Whether the function can be called with one argument, as far as its signature says."""
    while isinstance(invoke, Wrapper) and hasattr(invoke, "function"):  # not `from_callback`, which adds an argument
        invoke = invoke.function
    try:
        signature(cast(Any, invoke)).bind(None)
    except TypeError:
        return False
    except ValueError:  # it has no signature
        pass
    return True


def _settled(once: Call, gates: Gates) -> Call:
    """A call in which `settle` works."""

    async def call(entry: Entry) -> Any:
        token = CURRENT_CALL.set(gates.call_of(entry))
        try:
            return await once(entry)
        finally:
            CURRENT_CALL.reset(token)

    return call


def _timed(once: Call, seconds: float, timeout: float, retries: Retries) -> Call:
    @enable_ki_protection
    async def call(entry: Entry) -> Any:
        found = await _within(seconds, once, entry)
        if isinstance(found, tuple):
            return found[0]
        if trio.current_time() >= entry.since + timeout:
            await trio.sleep_forever()  # of two timeouts at one instant, that of the element has precedence
        raise timeout_of(entry) from found  # not a local name: the error and this frame would be a reference cycle

    def timeout_of(entry: Entry) -> AttemptTimeoutError:
        error = AttemptTimeoutError(
            f"attempt {entry.attempts} gave no result for {describe(entry.value)} within its attempt_timeout of "
            f"{seconds:g} s",
            seconds,
        )
        retries.mark_timeout(error)
        return error

    return call


def _is_final(error: Exception) -> bool:
    return isinstance(error, NotAsyncError | RefusedError)


def _timeout_method(function: object) -> OnTimeout | None:
    method = getattr(function, "timeout", None)
    return cast(OnTimeout, method) if callable(method) else None  # a client may have seconds under that name


def _flattened(result: Any) -> Sequence[Any]:
    try:
        outputs = iter(result)
    except TypeError as error:
        raise TypeError(f"with flatten=True a result must be an iterable of outputs, got {describe(result)}") from error
    found = tuple(outputs)
    for each in found:
        if type(each) is CoroutineType:
            raise NotAsyncError.for_coroutine("with flatten=True an output", each, verb="is", remedy="await")
    return found
