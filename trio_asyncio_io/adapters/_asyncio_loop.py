"""An asyncio loop in a thread of its own, and calls in it that Trio tasks await.

A call crosses twice: the Trio task hands it over and sleeps, and the loop hands it back when its asyncio task is done.
A cancellation only hands the call over once more. So the asyncio task alone decides how a call ends, and a result that
exists when the cancellation arrives is not lost.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any, Generic, NoReturn, TypeVar

import trio
from trio.lowlevel import enable_ki_protection

from .._function import awaitable_from
from ._cancellation import cancelled_by_asyncio

__all__ = ["AsyncioLoop", "Mailbox"]

T = TypeVar("T")


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
                runner.run(self._serve())
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
        if call.task is None:
            call.task = self._loop.create_task(call.awaited(), context=call.context)
            call.task.add_done_callback(partial(self._hand_back, call))
        else:
            call.task.cancel()  # no effect if it is done

    def _hand_back(self, call: _Call, _: object) -> None:
        self._to_trio.put(call)


class _Call:
    """A call of a coroutine function, its Trio task and its asyncio task."""

    __slots__ = ("arguments", "context", "function", "raise_cancel", "task", "waiter")

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.function = function
        self.arguments = arguments
        self.context = copy_context()
        self.waiter = trio.lowlevel.current_task()
        self.task: asyncio.Task[tuple[Any, BaseException | None]] | None = None
        self.raise_cancel: Callable[[], NoReturn] | None = None

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
        try:
            result, exit_exception = self.task.result()
        except asyncio.CancelledError as error:
            raise cancelled_by_asyncio(self.function) from error
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
