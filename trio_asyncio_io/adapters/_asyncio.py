"""The adapter `from_asyncio`: coroutine functions of asyncio, in a loop in a thread of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

from .._core.describe import describe
from .._function import AsyncFunction, Wrapper, as_function, is_async
from ._asyncio_loop import AsyncioLoop

__all__ = ["from_asyncio"]

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class _AsyncioFunction(Protocol[R_co]):
    """An `AsyncFunction` of asyncio coroutine functions. Its `open`, `close` and `timeout` are optional."""

    async def invoke(self, *args: Any, **kwargs: Any) -> R_co: ...


class from_asyncio(Wrapper, AsyncFunction[Any, R]):  # noqa: N801 - used like a function
    """An asyncio coroutine function as an `AsyncFunction`, so that asyncpg, aiohttp or redis clients work.

    Between `open` and `close` the adapter has an asyncio loop of its own, in a thread of its own. All its invocations
    run concurrently in this loop, with the context variables of their callers. `open` and `close` may be called from
    different tasks. `close` cancels the asyncio tasks that are left, and waits for them, for the loop's executor and
    for the thread; so does the end of the Trio run. If a background task fails, asyncio logs its exception, and the
    loop goes on.

    The function runs in another thread than Trio, so it must not use objects of the Trio program that are not
    thread-safe. Its timers follow the real clock, not a `MockClock` of Trio.

    Args:
        function: An asyncio coroutine function. Or an object with an async `invoke`, and optionally `open`, `close` and
            `timeout`, like an `AsyncFunction`. All of them run in the loop, so `open` can create a connection pool.

    Attributes:
        function: The function.

    Cancellation: a deadline raises one `asyncio.CancelledError` in the function. The call ends when the function has
    unwound, never before: asyncpg, for example, stops the query on the server first. If the function returns or raises
    something else, that counts.

    Raises:
        TypeError: The function is not async.
        RuntimeError: From a call: the function raised `asyncio.CancelledError`, which is the cause, although Trio had
            not cancelled it. Or the adapter is not open. From `open`: it is open already.

    Example:
        class Names:
            async def open(self):
                self.pool = await asyncpg.create_pool("postgresql:///shop", max_size=20)

            async def invoke(self, id):
                return await self.pool.fetchval("select name from customers where id = $1", id)

            async def close(self):
                await self.pool.close()

        names = from_asyncio(Names())
        async with ordered_wait(ids, names, capacity=20, timeout=5.0) as results:
            ...
    """

    def __init__(self, function: Callable[..., Awaitable[R]] | _AsyncioFunction[R]) -> None:
        _check(function)
        self.function = function
        self._inner = as_function(function)
        if callable(getattr(self._inner, "timeout", None)):
            self.timeout = self._timeout  # the operator calls this method if it exists
        self._loop: AsyncioLoop | None = None

    def __reduce__(self) -> Any:
        return from_asyncio, (self.function,)

    async def open(self) -> None:
        """Start the loop and open the function in it."""
        if self._loop is not None and self._loop.is_running:
            raise RuntimeError(f"{self!r} is open already: create one for each operator")
        loop = AsyncioLoop()
        await loop.start()
        try:
            if hasattr(self._inner, "open"):
                await loop.run(self._inner.open)
        except BaseException:
            await loop.stop()
            raise
        self._loop = loop

    async def invoke(self, *arguments: Any) -> R:
        """The function's result."""
        result: R = await self._opened().run(self._inner.invoke, *arguments)
        return result

    async def close(self) -> None:
        """Close the function and end the loop. When this returns or raises, none of its tasks is left."""
        loop = self._opened()
        try:
            if hasattr(self._inner, "close"):
                await loop.run(self._inner.close)
        finally:
            self._loop = None
            await loop.stop()

    async def _timeout(self, value: Any) -> R:
        result: R = await self._opened().run(self._inner.timeout, value)
        return result

    def _opened(self) -> AsyncioLoop:
        if self._loop is None:
            raise RuntimeError(f"{self!r} is not open: give it to an operator, or await its open() first")
        return self._loop

    def __repr__(self) -> str:
        return f"from_asyncio({describe(self.function)})"


def _check(function: Any) -> None:
    takes = "from_asyncio takes an asyncio coroutine function, or an object with an async `invoke`"
    if isinstance(function, type):
        raise TypeError(f"{takes}, got {describe(function)}: give an instance, not the class")
    if is_async(function):
        return
    if not callable(function):
        raise TypeError(f"{takes}, got {describe(function)}")
    raise TypeError(
        f"{takes}, but {describe(function)} is not async. Declare it with `async def`; a blocking function can be run "
        "in threads: trio_asyncio_io.adapters.in_thread(function)"
    )
