"""The adapter `from_asyncio`: coroutine functions of asyncio, in a loop of trio-asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from typing import Any, Protocol, TypeVar

import trio

from .._core.describe import describe
from .._function import AsyncFunction, Wrapper, as_function, awaitable_from, is_async
from ._cancellation import cancelled_by_asyncio
from ._trio_asyncio import check_installed, trio_asyncio

__all__ = ["from_asyncio"]

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class _AsyncioFunction(Protocol[R_co]):
    """An `AsyncFunction` of asyncio coroutine functions. Its `open`, `close` and `timeout` are optional."""

    async def invoke(self, *args: Any, **kwargs: Any) -> R_co: ...


class from_asyncio(Wrapper, AsyncFunction[Any, R]):  # noqa: N801 - used like a function
    """An asyncio coroutine function as an `AsyncFunction`, so that asyncpg, aiohttp or redis clients work.

    Between `open` and `close` the adapter has an asyncio loop of its own inside the Trio run (a loop of trio-asyncio).
    All its invocations run concurrently in this loop, whose timers follow Trio's clock. `open` and `close` may be
    called from different tasks. `close` cancels the asyncio tasks that are left, and waits for them. If a background
    task fails, asyncio logs its exception, and the loop goes on. Asyncio elsewhere in the process, such as
    `asyncio.run` in another thread, is not affected.

    Args:
        function: An asyncio coroutine function. Or an object with an async `invoke`, and optionally `open`, `close` and
            `timeout`, like an `AsyncFunction`. All of them run in the loop, so `open` can create a connection pool.

    Attributes:
        function: The function.

    Cancellation: a deadline raises one `asyncio.CancelledError` in the function. The call ends when the function has
    unwound, never before: asyncpg, for example, stops the query on the server first. If the function returns or raises
    something else, that counts.

    Raises:
        ImportError: trio-asyncio is not installed.
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
        check_installed()
        self.function = function
        self._inner = as_function(function)
        if callable(getattr(self._inner, "timeout", None)):
            self.timeout = self._timeout  # the operator calls this method if it exists
        self._loop: _Loop | None = None

    def __reduce__(self) -> Any:
        return from_asyncio, (self.function,)

    async def open(self) -> None:
        """Start the loop and open the function in it."""
        if self._loop is not None and self._loop.is_running:
            raise RuntimeError(f"{self!r} is open already: create one for each operator")
        loop = _Loop()
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

    def _opened(self) -> _Loop:
        if self._loop is None:
            raise RuntimeError(f"{self!r} is not open: give it to an operator, or await its open() first")
        return self._loop

    def __repr__(self) -> str:
        return f"from_asyncio({describe(self.function)})"


class _Loop:
    """An asyncio loop in a Trio task of its own, so that different tasks can start and stop it."""

    def __init__(self) -> None:
        self._started = trio.Event()
        self._stopping = trio.Event()
        self._ended = trio.Event()
        self._error: BaseException | None = None

    @property
    def is_running(self) -> bool:
        return self._started.is_set() and not self._ended.is_set()

    async def start(self) -> None:
        """Start the loop.

        Raises:
            ImportError: trio-asyncio does not support this version of Python.
            RuntimeError: It could not be started. The cause has the reason.
        """
        trio_asyncio()  # here, so that an error of its import is raised as it is
        trio.lowlevel.spawn_system_task(self._run, name="trio_asyncio_io asyncio loop")
        with trio.CancelScope(shield=True):
            await self._started.wait()
        if self._error is not None:
            raise RuntimeError(f"the asyncio loop did not start: {self._error!r}") from self._error

    async def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The result of an asyncio coroutine function.

        Raises:
            RuntimeError: The loop has ended; or asyncio cancelled the call, and Trio did not.

        Cancellation: the caller leaves once the function has unwound.
        """
        if not self.is_running:
            raise RuntimeError("the asyncio loop has ended") from self._error
        try:
            result, exit_exception = await trio_asyncio().run_aio_future(self._create_task(function, arguments))
        except asyncio.CancelledError as error:
            raise cancelled_by_asyncio(function) from error
        if exit_exception is not None:
            raise exit_exception
        return result

    async def stop(self) -> None:
        """Cancel the tasks that are left, and wait until the loop has ended."""
        self._stopping.set()
        with trio.CancelScope(shield=True):
            await self._ended.wait()

    async def _run(self) -> None:
        try:
            async with trio_asyncio().open_loop() as self._loop:
                self._loop.set_exception_handler(asyncio.BaseEventLoop.default_exception_handler)
                self._started.set()
                await self._stopping.wait()
        except BaseException as error:  # noqa: BLE001 - in a system task it would end the Trio run
            self._error = error
        finally:
            self._ended.set()
            self._started.set()

    def _create_task(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> asyncio.Task[Any]:
        context = copy_context()
        context.run(trio_asyncio().current_loop.set, self._loop)  # for functions that call Trio themselves
        task: asyncio.Task[Any] = self._loop.create_task(_call(function, arguments), context=context)
        return task


async def _call(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, BaseException | None]:
    """The result and None, or None and an exit exception, which must not end the loop that other calls use."""
    try:
        return await awaitable_from(function, *arguments), None
    except (KeyboardInterrupt, SystemExit) as exit_exception:
        return None, exit_exception


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
