"""The adapters of synchronous functions.

`in_thread` takes a blocking callable, `from_callback` one that reports its result to a `ResultFuture`, and
`from_future` one that returns a `concurrent.futures.Future`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from functools import partial
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, TypeVarTuple, overload

import trio

from .._operator.errors import NotAsyncError
from .._operator.function import Wrapper, is_async
from .._values.describe import describe

P = ParamSpec("P")
R = TypeVar("R")
Values = TypeVarTuple("Values")
R_co = TypeVar("R_co", covariant=True)


class in_thread(Wrapper, Generic[P, R]):  # noqa: N801 - used like a function
    """A blocking callable as an async function. Each call runs in a thread of its own.

    The threads come from Trio's cache of threads. They do not count towards Trio's default limit of 40: the operator's
    capacity is the limit.

    Args:
        function: A blocking callable. It may use locks, sockets and `time.sleep`, but not Trio.

    Cancellation: the call ends immediately, and its slot is free. Python cannot stop a thread, so the function runs to
    its end, and its result is ignored: give it a timeout of its own.

    Raises:
        TypeError: The function is not callable, or it is async. A function that is not declared async, but returns a
            coroutine, raises it from its first call.

    Example:
        async with ordered_wait(urls, in_thread(requests.get), timeout=5.0) as results:
            ...
    """

    def __init__(self, function: Callable[P, R]) -> None:
        _check_synchronous(function, "in_thread", "a blocking callable")
        self.function: Callable[P, R] = function

    async def __call__(self, *arguments: P.args, **keywords: P.kwargs) -> R:
        """Call the function in a thread and return its result."""
        limiter = trio.CapacityLimiter(1)
        call = partial(self.function, *arguments, **keywords)
        return await trio.to_thread.run_sync(call, abandon_on_cancel=True, limiter=limiter)


class ResultFuture(Generic[R]):
    """The result or exception of one call, set by a callback (Flink's `ResultFuture`).

    The first call of `complete` or `complete_exceptionally` wins. It may come from any thread, including Trio's. Later
    calls are ignored, and so are calls after the deadline and after the end of the Trio run.

    `from_callback` creates one for each call. You can also create one inside a Trio run, for example in a test:

        >>> from trio_asyncio_io.adapters import ResultFuture
        >>> async def main():
        ...     result_future = ResultFuture()
        ...     print(result_future.complete("first"), result_future.complete("second"))
        ...     print(await result_future.wait())
        >>> trio.run(main)
        True False
        first
    """

    __slots__ = ("_claim", "_error", "_is_settled", "_result", "_token", "_waiter")

    def __init__(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        # Acquired once, by the first call or by a cancellation, and never released
        self._claim = threading.Lock()
        self._waiter: trio.lowlevel.Task | None = None
        self._is_settled = False
        self._result: Any = None
        self._error: Exception | None = None

    def complete(self, result: R) -> bool:
        """End the call with a result.

        Returns:
            Whether this was the first call, and in time.
        """
        return self._settle(result, None)

    def complete_exceptionally(self, error: Exception) -> bool:
        """End the call with an exception, which is raised as if the function had raised it.

        Returns:
            Whether this was the first call, and in time.

        Raises:
            TypeError: `error` is not an instance of `Exception`. The call goes on.
        """
        if not isinstance(error, Exception):
            raise TypeError(f"complete_exceptionally takes an instance of Exception, got {describe(error)}")
        return self._settle(None, error)

    async def wait(self) -> R:
        """The result. Raises the exception instead, if there is one. Only one task may wait, and only once.

        Cancellation: the call has no result, and later ones are ignored. A result that came first wins.
        """
        if self._is_settled:
            await trio.lowlevel.cancel_shielded_checkpoint()
        else:
            self._waiter = trio.lowlevel.current_task()
            await trio.lowlevel.wait_task_rescheduled(self._abort)
        error, self._error = self._error, None
        if error is not None:
            try:
                raise error
            finally:
                del error  # no cycle of the exception and this frame
        result: R = self._result
        return result

    def _settle(self, result: Any, error: Exception | None) -> bool:
        if not self._claim.acquire(blocking=False):
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

    def _abort(self, _: object) -> trio.lowlevel.Abort:
        is_claimed = self._claim.acquire(blocking=False)
        return trio.lowlevel.Abort.SUCCEEDED if is_claimed else trio.lowlevel.Abort.FAILED


class from_callback(Wrapper, Generic[*Values, R]):  # noqa: N801 - used like a function
    """A callable that reports its result to a `ResultFuture`, as an async function (Flink's `asyncInvoke`).

    Args:
        function: A callable, (*values, result_future) -> anything. Its return value is ignored. It must start the work
            and return immediately, because it runs in Trio's thread. Before it returns, or later from any thread, call
            `result_future.complete(result)` or `complete_exceptionally(error)`. An exception that the function itself
            raises is the call's exception.

    Cancellation: the call ends immediately, and a later completion is ignored. So a call whose callback never comes
    ends at the deadline. The work that the function has started goes on: give it a timeout of its own.

    Raises:
        TypeError: The function is not callable, or it is async.

    Example:
        def look_up(key, result_future):
            client.get(
                key,
                on_value=result_future.complete,
                on_error=result_future.complete_exceptionally,
            )

        async with ordered_wait(keys, from_callback(look_up), timeout=5.0) as results:
            ...
    """

    @overload
    def __init__(self, function: Callable[[*Values, ResultFuture[R]], object]) -> None: ...
    @overload
    def __init__(self: from_callback[*tuple[Any, ...], Any], function: Callable[..., object]) -> None: ...

    def __init__(self, function: Callable[..., object]) -> None:
        _check_synchronous(function, "from_callback", "a callable, (*values, result_future) -> anything")
        self._function = function  # not `function`: others would read its parameters, with `result_future`

    @property
    def wrapped(self) -> Any:
        """The function."""
        return self._function

    def __reduce__(self) -> Any:
        return from_callback, (self._function,)

    async def __call__(self, *arguments: *Values) -> R:
        """Call the function and wait for the callback."""
        result_future: ResultFuture[R] = ResultFuture()
        try:
            self._function(*arguments, result_future)
        except BaseException:
            result_future.complete_exceptionally(RuntimeError("the function raised"))  # later calls are ignored
            raise
        return await result_future.wait()


class _Future(Protocol[R_co]):
    """The required methods of a future. Those of executors, gRPC and Dask have them."""

    def add_done_callback(self, callback: Callable[[Any], Any], /) -> Any: ...
    def cancel(self) -> Any: ...
    def result(self) -> R_co: ...


class from_future(Wrapper, Generic[P, R]):  # noqa: N801 - used like a function
    """A callable that returns a `concurrent.futures.Future`, as an async function.

    Args:
        function: A callable, (*values) -> future. It must return immediately, because it runs in Trio's thread. A
            future is any object with `add_done_callback`, `cancel` and `result`.

    Cancellation: `future.cancel()` is called, and the call ends immediately. A future that is running cannot be
    cancelled: it runs to its end, and its result is ignored.

    Raises:
        TypeError: The function is not callable, or it is async.
        NotAsyncError: From a call: the function did not return such a future.
        RuntimeError: From a call: the future was cancelled elsewhere. `concurrent.futures.CancelledError` is the cause.

    Example:
        with ProcessPoolExecutor() as pool:
            parse_elsewhere = from_future(lambda page: pool.submit(parse, page))
            async with ordered_wait(pages, parse_elsewhere, timeout=5.0) as results:
                ...
    """

    def __init__(self, function: Callable[P, _Future[R]]) -> None:
        _check_synchronous(function, "from_future", "a callable that returns a Future")
        self.function: Callable[P, _Future[R]] = function

    async def __call__(self, *arguments: P.args, **keywords: P.kwargs) -> R:
        """Call the function and return the result of its future."""
        future = self._checked(self.function(*arguments, **keywords))
        done: ResultFuture[None] = ResultFuture()
        future.add_done_callback(lambda _: done.complete(None))
        try:
            await done.wait()
        except trio.Cancelled:
            future.cancel()
            raise
        try:
            return future.result()
        except CancelledError as error:
            raise RuntimeError(f"the future of {describe(self.function)} was cancelled, not by the operator") from error
        finally:
            del future  # no cycle of its exception and this frame

    def _checked(self, future: _Future[R]) -> _Future[R]:
        if not all(callable(getattr(future, name, None)) for name in ("add_done_callback", "cancel", "result")):
            raise NotAsyncError(
                f"from_future needs a Future, but {describe(self.function)} returned {describe(future)}. "
                "A blocking function can be run in threads: trio_asyncio_io.adapters.in_thread(function)"
            )
        return future


def _check_synchronous(function: Any, adapter: str, takes: str) -> None:
    """Check that the function is a synchronous callable.

    Raises:
        TypeError: It is not. The message names the adapter to use instead.
    """
    if is_async(function):
        raise TypeError(
            f"{describe(function)} is async already: {adapter} takes {takes}. Use a function for Trio without an "
            "adapter, and one for asyncio with trio_asyncio_io.adapters.from_asyncio(function)"
        )
    if not callable(function):
        raise TypeError(f"{adapter} takes {takes}, got {describe(function)}")
