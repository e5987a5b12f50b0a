"""The adapter `from_asyncio`: coroutine functions of asyncio, in a loop in a thread of its own.

A call crosses twice: the Trio task hands it over and sleeps, and the loop hands it back when its asyncio task is done.
A cancellation only hands the call over once more. So the asyncio task alone decides how a call ends, and a result that
exists when the cancellation arrives is not lost.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, NoReturn, ParamSpec, TypeVar

import trio
from trio.lowlevel import enable_ki_protection

from .._operator.function import Invokes, OpenedFunction, Wrapper, as_function, awaitable_from, is_async
from .._values.describe import describe

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class from_asyncio(Wrapper, OpenedFunction, Generic[P, R]):  # noqa: N801 - used like a function
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

    def __init__(self, function: Callable[P, Awaitable[R]] | Invokes[P, R]) -> None:
        self.function = function
        self._inner = as_function(function)
        if not is_async(function):
            raise TypeError(
                "from_asyncio takes an asyncio coroutine function, or an object with an async `invoke`, but "
                f"{describe(function)} is not async. Declare it with `async def`; a blocking function can be run in "
                "threads: trio_asyncio_io.adapters.in_thread(function)"
            )
        if callable(getattr(self._inner, "timeout", None)):
            self.timeout = self._timeout  # the operator calls this method if it exists
        self._loop: AsyncioLoop | None = None

    def __reduce__(self) -> Any:
        return from_asyncio, (self.function,)

    def __call__(self, *arguments: P.args, **keywords: P.kwargs) -> Coroutine[Any, Any, R]:
        """The same as `invoke`, so that the adapter is a callable with the parameters of its function."""
        return self.invoke(*arguments, **keywords)

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

    async def invoke(self, *arguments: P.args, **keywords: P.kwargs) -> R:
        """The function's result."""
        invoke = partial(self._inner.invoke, **keywords) if keywords else self._inner.invoke
        result: R = await self._opened().run(invoke, *arguments)
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


class AsyncioLoop:
    """An asyncio loop that runs from `start` to `stop`, or to the end of the Trio run.

    Any Trio task may call each method. Ctrl-C interrupts them only where they wait. When the loop ends, the asyncio
    tasks that are left are cancelled and awaited, asynchronous generators are closed, and the loop's default executor
    is shut down, as by `asyncio.run`.
    """

    def __init__(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        self._thread = threading.Thread(target=self._run, name="trio_asyncio_io asyncio loop", daemon=False)
        self._started = trio.Event()
        self._is_stopping = False
        self._is_closing = False
        self._ended = trio.Event()
        self._unfinished: set[_Call] = set()
        self._to_trio: Mailbox[_Call] = Mailbox(self._token.run_sync_soon, self._finish)
        self._to_asyncio: Mailbox[_Call]
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event
        self._error: BaseException | None = None

    @property
    def is_running(self) -> bool:
        """Whether calls are accepted."""
        return self._started.is_set() and not self._is_stopping and not self._ended.is_set()

    @enable_ki_protection
    async def start(self) -> None:
        """Start the thread and the loop.

        Raises:
            RuntimeError: It could not be started. The cause has the reason.
        """
        self._thread.start()
        trio.lowlevel.spawn_system_task(self._end_with_the_run, name="trio_asyncio_io asyncio loop")
        with trio.CancelScope(shield=True):
            await self._started.wait()
        if self._error is not None:
            raise RuntimeError(f"the asyncio loop did not start: {self._error!r}") from self._error

    @enable_ki_protection
    async def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The result of an asyncio coroutine function, which has the caller's context variables.

        Raises:
            RuntimeError: The loop has ended; or asyncio cancelled the call, and Trio did not.

        Cancellation: the caller leaves once the function has unwound.
        """
        if not self.is_running:
            raise RuntimeError("the asyncio loop has ended") from self._error
        await trio.lowlevel.checkpoint_if_cancelled()
        call = _Call(function, arguments)
        self._unfinished.add(call)
        self._to_asyncio.put(call)

        def abort(raise_cancel: Callable[[], NoReturn]) -> trio.lowlevel.Abort:
            call.raise_cancel = raise_cancel
            self._to_asyncio.put(call)
            return trio.lowlevel.Abort.FAILED

        await trio.lowlevel.wait_task_rescheduled(abort)
        if call.task is None or not call.task.done():
            raise RuntimeError("the asyncio loop has ended") from self._error
        return call.result()

    @enable_ki_protection
    async def stop(self) -> None:
        """End the loop. When this returns, its tasks and its thread have ended."""
        self._is_stopping = True
        with trio.CancelScope(shield=True):
            await self._started.wait()
            if not self._ended.is_set():
                with suppress(RuntimeError):  # the loop has just ended by itself
                    self._loop.call_soon_threadsafe(self._stop.set)
            await self._ended.wait()
        self._thread.join()

    # In Trio's thread

    async def _end_with_the_run(self) -> None:
        """A system task, which Trio cancels after the main task. Without it, the thread would outlive the run."""
        try:
            await self._ended.wait()
        finally:
            await self.stop()

    def _finish(self, call: _Call) -> None:
        self._unfinished.remove(call)
        trio.lowlevel.reschedule(call.waiter)

    def _finish_all(self) -> None:
        self._started.set()
        self._ended.set()
        while self._unfinished:  # the loop ended without them, for example because a call has stopped it
            trio.lowlevel.reschedule(self._unfinished.pop().waiter)

    # In the loop's thread

    def _run(self) -> None:
        try:
            with asyncio.Runner() as runner:
                self._loop = runner.get_loop()
                try:
                    runner.run(self._serve())
                finally:
                    self._is_closing = True
        except BaseException as error:  # noqa: BLE001 - the calls raise it
            self._error = error
        with suppress(trio.RunFinishedError):
            self._token.run_sync_soon(self._finish_all)

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        self._to_asyncio = Mailbox(self._loop.call_soon_threadsafe, self._start_or_cancel)
        self._token.run_sync_soon(self._started.set)
        await self._stop.wait()

    def _start_or_cancel(self, call: _Call) -> None:
        if self._is_closing:  # the loop cancels the tasks that it had, and would leave a new one
            return
        task = call.task
        if not call.has_started:
            call.has_started = True
            call.task = self._loop.create_task(call.awaited(), context=call.context)
            call.task.add_done_callback(lambda _: self._to_trio.put(call))
        elif task is not None:
            task.cancel()  # no effect if it is done


@dataclass(eq=False, slots=True)
class _Call:
    """A call of a coroutine function, its Trio task and its asyncio task, until its result is taken."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    context: Context = field(default_factory=copy_context, init=False)
    waiter: trio.lowlevel.Task = field(default_factory=trio.lowlevel.current_task, init=False)
    has_started: bool = field(default=False, init=False)
    task: asyncio.Task[tuple[Any, BaseException | None]] | None = field(default=None, init=False)
    raise_cancel: Callable[[], NoReturn] | None = field(default=None, init=False)

    async def awaited(self) -> tuple[Any, BaseException | None]:
        """The result and None, or None and an exit exception, which must not end the loop that other calls use."""
        try:
            return await awaitable_from(self.function, *self.arguments), None
        except (KeyboardInterrupt, SystemExit) as exit_exception:
            return None, exit_exception

    def result(self) -> Any:
        """The function's result. Raises its exception, or Trio's `Cancelled` if that cancelled it."""
        assert self.task is not None
        if self.task.cancelled() and self.raise_cancel is not None:
            self.raise_cancel()
        task, self.task = self.task, None
        try:
            result, exit_exception = task.result()
        except asyncio.CancelledError as error:
            # It is not an `Exception`, and would end the operator
            raise RuntimeError(
                f"{describe(self.function)} was cancelled inside asyncio, not by the operator"
            ) from error
        finally:
            del task  # no cycle of its exception and this frame
        if exit_exception is not None:
            raise exit_exception
        return result


class Mailbox(Generic[T]):
    """Hands items over to another thread, with one wake-up for all that arrive before that thread runs.

    Args:
        wake: Runs a callable in the other thread, soon.
        receive: Called there with each item.
    """

    def __init__(self, wake: Callable[[Callable[[], None]], object], receive: Callable[[T], None]) -> None:
        self._wake = wake
        self._receive = receive
        self._items: deque[T] = deque()
        self._is_waking = False

    def put(self, item: T) -> None:
        """Hand the item over. If the other thread has ended, nothing happens."""
        self._items.append(item)
        if not self._is_waking:
            self._is_waking = True
            with suppress(RuntimeError):
                self._wake(self._deliver)

    def _deliver(self) -> None:
        self._is_waking = False  # first, because an item that is put after the last `popleft` needs a wake-up
        while self._items:
            self._receive(self._items.popleft())
