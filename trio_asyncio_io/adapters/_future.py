"""The adapter `from_future`: callables that return a `concurrent.futures.Future`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Any, Generic, Protocol, TypeVar

import trio

from .._core.describe import describe
from .._errors import NotAsyncError
from .._function import Wrapper
from ._callback import ResultFuture
from ._cancellation import cancelled_by_asyncio
from ._synchronous import check_synchronous

__all__ = ["from_future"]

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class _Future(Protocol[R_co]):
    """The required methods of a future. Those of executors, gRPC and Dask have them."""

    def add_done_callback(self, callback: Callable[[Any], Any], /) -> Any: ...
    def cancel(self) -> Any: ...
    def result(self) -> R_co: ...


class from_future(Wrapper, Generic[R]):  # noqa: N801 - used like a function
    """A callable that returns a `concurrent.futures.Future`, as an async function.

    Args:
        function: A callable, (*values) -> future. It must return immediately, because it runs in Trio's thread. A
            future is any object with `add_done_callback`, `cancel` and `result`.

    Attributes:
        function: The function.

    Cancellation: `future.cancel()` is called, and the call ends at once. A future that is running cannot be cancelled:
    it runs to its end, and its result is ignored.

    Raises:
        TypeError: The function is not callable, or it is async.
        NotAsyncError: From a call: the function did not return such a future.
        RuntimeError: From a call: the future was cancelled elsewhere, or raised `asyncio.CancelledError`. That, or
            `concurrent.futures.CancelledError`, is the cause.

    Example:
        with ProcessPoolExecutor() as pool:
            parse_elsewhere = from_future(lambda page: pool.submit(parse, page))
            async with ordered_wait(pages, parse_elsewhere, timeout=5.0) as results:
                ...
    """

    def __init__(self, function: Callable[..., _Future[R]]) -> None:
        check_synchronous(function, "from_future", "a callable that returns a Future")
        self.function: Callable[..., _Future[R]] = function

    async def __call__(self, *arguments: Any) -> R:
        """Call the function and return the result of its future."""
        try:
            return await self._result(arguments)
        except asyncio.CancelledError as error:
            raise cancelled_by_asyncio(self.function) from error

    async def _result(self, arguments: tuple[Any, ...]) -> R:
        future = self._future_for(arguments)
        done: ResultFuture[object] = ResultFuture()
        future.add_done_callback(done.complete)
        try:
            await done.wait()
        except trio.Cancelled:
            future.cancel()
            raise
        try:
            return future.result()
        except CancelledError as error:
            raise RuntimeError(f"the future of {describe(self.function)} was cancelled, not by the operator") from error

    def _future_for(self, arguments: tuple[Any, ...]) -> _Future[R]:
        future = self.function(*arguments)
        if not all(callable(getattr(future, name, None)) for name in ("add_done_callback", "cancel", "result")):
            raise NotAsyncError(
                f"from_future needs a Future, but {describe(self.function)} returned {describe(future)}. "
                "A blocking function can be run in threads: trio_asyncio_io.adapters.in_thread(function)"
            )
        if hasattr(future, "_asyncio_future_blocking"):  # asyncio uses this attribute to recognise its futures
            raise NotAsyncError(
                f"{describe(self.function)} returned {describe(future)}, which is an asyncio future: await it in a "
                "coroutine function, and pass that to trio_asyncio_io.adapters.from_asyncio(function)"
            )
        return future

    def __repr__(self) -> str:
        return f"from_future({describe(self.function)})"
