"""The callback: a result that is handed over from anywhere, and the function that says so."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

import trio

from .._core.describe import describe
from .._function import Wrapper
from ._cancellation import cancelled_by_asyncio
from ._synchronous import check_synchronous

__all__ = ["ResultFuture", "from_callback"]

R = TypeVar("R")


class ResultFuture(Generic[R]):
    """Where a callback puts the result or the error of one call (Flink's `ResultFuture`).

    The first call of `complete` or `complete_exceptionally` wins, from whatever thread it comes, Trio's own
    included. Later calls are ignored: after the deadline, too, and after the Trio run has ended.

    `from_callback` makes one for each call. By itself it is made inside a Trio run, say in a test:

        >>> from trio_asyncio_io.adapters import ResultFuture
        >>> async def main():
        ...     result_future = ResultFuture()
        ...     print(result_future.complete("first"), result_future.complete("second"))
        ...     print(await result_future.wait())
        >>> trio.run(main)
        True False
        first
    """

    __slots__ = ("_error", "_is_settled", "_prize", "_result", "_token", "_waiter")

    def __init__(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        self._prize = threading.Lock()  # taken once, by the first call or by a cancellation; never given back
        self._waiter: trio.lowlevel.Task | None = None
        self._is_settled = False
        self._result: Any = None
        self._error: Exception | None = None

    def complete(self, result: R) -> bool:
        """End the call with this result.

        Returns:
            Whether this was the first call, and in time.
        """
        return self._settle(result, None)

    def complete_exceptionally(self, error: Exception | asyncio.CancelledError) -> bool:
        """End the call with this exception, which is raised as if the function itself had raised it.

        An `asyncio.CancelledError` is raised as a `RuntimeError` with it as the cause.

        Returns:
            Whether this was the first call, and in time.

        Raises:
            TypeError: `error` is no instance of `Exception`. The call goes on.
        """
        if isinstance(error, asyncio.CancelledError):
            cancelled = RuntimeError("the call was cancelled inside asyncio, and not by us")
            cancelled.__cause__ = error
            return self._settle(None, cancelled)
        if not isinstance(error, Exception):
            raise TypeError(f"complete_exceptionally takes an instance of Exception, got {describe(error)}")
        return self._settle(None, error)

    async def wait(self) -> R:
        """The result, or the exception raised. One task waits, once; `from_callback` does.

        Cancellation: there was no result, and whatever still comes is ignored. A result that was there
        first wins.
        """
        if self._is_settled:
            await trio.lowlevel.cancel_shielded_checkpoint()
        else:
            self._waiter = trio.lowlevel.current_task()
            await trio.lowlevel.wait_task_rescheduled(self._give_up)
        if self._error is not None:
            raise self._error
        result: R = self._result
        return result

    def _settle(self, result: Any, error: Exception | None) -> bool:
        if not self._prize.acquire(blocking=False):
            return False
        self._result = result
        self._error = error
        try:
            self._token.run_sync_soon(self._wake)
        except trio.RunFinishedError:
            return False
        return True

    def _wake(self) -> None:
        self._is_settled = True
        if self._waiter is not None:
            trio.lowlevel.reschedule(self._waiter)

    def _give_up(self, _: object) -> trio.lowlevel.Abort:
        is_mine = self._prize.acquire(blocking=False)
        return trio.lowlevel.Abort.SUCCEEDED if is_mine else trio.lowlevel.Abort.FAILED


class from_callback(Wrapper, Generic[R]):  # noqa: N801 - used like a function
    """A callable that hands its result to a `ResultFuture` as an async function (Flink's `asyncInvoke`).

    Args:
        function: A callable, (*values, result_future) -> anything; what it returns is ignored. It starts the
            work and returns at once, for it is called in Trio's own thread. Later, from any thread, or before
            it returns, something calls `result_future.complete(result)` or `complete_exceptionally(error)`.
            What the function itself raises is the call's exception.

    Cancellation: the waiting ends at once, and a later call is ignored. So a callback that never comes ends
    at the deadline. What the function has started runs on: give it a timeout of its own, too.

    Raises:
        TypeError: The function is not callable, or is async already.
        RuntimeError: From a call: it was completed with an `asyncio.CancelledError`, or the function raised one; that
            is the cause.

    Example:
        def look_up(key, result_future):
            client.get(key, on_value=result_future.complete, on_error=result_future.complete_exceptionally)

        async with ordered_wait(keys, from_callback(look_up), timeout=5.0) as results:
            ...
    """

    @overload
    def __init__(self, function: Callable[[Any, ResultFuture[R]], object]) -> None: ...
    @overload
    def __init__(self: from_callback[Any], function: Callable[..., object]) -> None: ...

    def __init__(self, function: Callable[..., object]) -> None:
        check_synchronous(function, "from_callback", "a callable, (*values, result_future) -> anything")
        self._function = function
        # Not as `function`: whoever reads the names of its parameters must not find `result_future` among them.
        self.__name__ = getattr(function, "__name__", type(function).__name__)
        if (signature := _without_result_future(function)) is not None:
            self.__signature__ = signature

    @property
    def wrapped(self) -> Any:
        """The function, as given."""
        return self._function

    def __reduce__(self) -> Any:
        return from_callback, (self._function,)

    async def __call__(self, *arguments: Any) -> R:
        """Call the function and wait for the callback."""
        result_future: ResultFuture[R] = ResultFuture()
        try:
            self._function(*arguments, result_future)
        except BaseException as error:
            result_future.complete_exceptionally(RuntimeError("the function raised"))  # what still comes is late
            if isinstance(error, asyncio.CancelledError):
                raise cancelled_by_asyncio(self._function) from error
            raise
        return await result_future.wait()

    def __repr__(self) -> str:
        return f"from_callback({describe(self._function)})"


def _without_result_future(function: Callable[..., object]) -> inspect.Signature | None:
    """The signature that is left for the values; None where it cannot be told."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    parameters = list(signature.parameters.values())
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    positional = [each for each in parameters if each.kind in kinds]
    if positional:
        parameters.remove(positional[-1])
    return signature.replace(parameters=parameters)
