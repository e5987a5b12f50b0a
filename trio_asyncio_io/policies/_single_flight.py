"""The policy `single_flight`: concurrent calls with one key share one call.

single_flight   the policy
SharedCall      a call that several tasks wait for
CallTasks       the tasks that make such calls
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Any, Generic, ParamSpec, TypeVar

import trio
from trio.lowlevel import enable_ki_protection

from .._operator.calls import register_shared_call, remove_shared_call
from .._values.exceptions import copied, set_on
from ._policy import Policy, Wrapped, by_position

P = ParamSpec("P")
R = TypeVar("R")


class single_flight(Policy[P, R]):  # noqa: N801 - used like a function
    """A function whose concurrent calls with one key share one call, and its result or exception.

    The first caller starts the call, and callers that arrive while it runs share its outcome. Nothing is cached: put
    `cached` around it for that (Go's `singleflight`).

    Args:
        function: An async callable or an `AsyncFunction`.
        key: The arguments -> hashable. None: the arguments themselves. Keys of different types differ, such as 1, 1.0
            and True.

    Attributes:
        calls: Calls made.
        shared: Calls saved, because another one was in flight.

    Raises:
        Exception: The exception of the call. If several callers share it, each gets a copy, unless it cannot be copied.

    Cancellation: a caller leaves immediately if others share the call, even the one that started it. The last one
    cancels the call and leaves once it has unwound.

    Example:
        async with unordered_wait(codes, single_flight(fetch), timeout=5.0) as results:
            ...
    """

    def __init__(self, function: Wrapped[P, R], *, key: Callable[..., Hashable] | None = None) -> None:
        super().__init__(function, key=key)
        self.calls = 0
        self.shared = 0
        self._in_flight: dict[Hashable, SharedCall[R]] = {}
        self._tasks = CallTasks("trio_asyncio_io single flight")

    async def _open(self) -> None:
        await super()._open()
        self._tasks.open()

    async def _close(self) -> None:
        await self._tasks.close()
        await super()._close()

    @enable_ki_protection
    async def invoke(self, *arguments: P.args, **keywords: P.kwargs) -> R:
        """The outcome of the call in flight for this key, or of a new one."""
        values = by_position(self, arguments, keywords) if keywords else arguments
        key = self.key_of(values)
        call = self._in_flight.get(key)
        if call is not None and not call.is_abandoned:
            self.shared += 1
        else:
            await trio.lowlevel.checkpoint_if_cancelled()  # a call must not begin in a scope that is cancelled already
            call = self._in_flight[key] = self._tasks.start(partial(self._call, *values))
            self.calls += 1
        try:
            return await call.wait()
        finally:
            # Not as soon as the call has ended: until a waiter has its outcome, a new caller must not repeat the call
            if call.has_ended and self._in_flight.get(key) is call:
                del self._in_flight[key]


@dataclass(eq=False, slots=True)
class SharedCall(Generic[R]):
    """A call that is cancelled when nobody waits for it any longer, and that never outlives its waiters.

    The task that starts it, by `CallTasks.start`, must also wait for it, without a checkpoint between. When the last
    waiter has left, the outcome is gone.

    Args:
        function: Returns the awaitable. Called once.
        scope: The scope in which it is called.

    Attributes:
        is_abandoned: Whether all waiters have left. The call is being cancelled, and nobody else may wait for it.
    """

    function: Callable[[], Awaitable[R]]
    scope: trio.CancelScope
    is_abandoned: bool = field(default=False, init=False)
    _ended: trio.Event = field(default_factory=trio.Event, init=False)
    _waiting: int = field(default=0, init=False)
    _is_shared: bool = field(default=False, init=False)
    _result: tuple[R] | None = field(default=None, init=False)
    _error: BaseException | None = field(default=None, init=False)
    _traceback: TracebackType | None = field(default=None, init=False)

    @property
    def has_ended(self) -> bool:
        """Whether the call has returned, raised or unwound. Until its last waiter leaves, others get its outcome."""
        return self._ended.is_set()

    async def wait(self) -> R:
        """The call's result.

        Raises:
            BaseException: The exception of the call. If several tasks wait, each gets a copy of an `Exception`, unless
                it cannot be copied.

        Cancellation: the caller leaves immediately if others wait. The last one cancels the call and leaves once it has
        unwound. If the call returns or raises nevertheless, that counts.
        """
        self._waiting += 1
        self._is_shared = self._is_shared or self._waiting > 1
        try:
            await self._ended.wait()
        except BaseException:
            if self._waiting > 1 or not await self._abandon():
                raise
        finally:
            self._waiting -= 1
        return self._outcome()

    def end(self, result: tuple[R] | None = None, error: BaseException | None = None) -> None:
        """Give the waiters the result in the tuple, or the exception. Neither: the call has unwound."""
        self._result, self._error = result, error
        if error is not None:
            self._traceback = error.__traceback__ and error.__traceback__.tb_next  # without the frame of the task
        self._ended.set()

    async def _abandon(self) -> bool:
        """Cancel the call and wait until it has unwound. Returns whether it has an outcome nevertheless."""
        if not self.has_ended:  # otherwise another call may be running in the scope
            self.is_abandoned = True
            self.scope.cancel()
        with trio.CancelScope(shield=True):
            await self._ended.wait()
        return self._result is not None or self._error is not None

    def _outcome(self) -> R:
        if self._result is not None:
            return self._result[0]
        if self._error is None:
            raise RuntimeError("the shared call was cancelled, because its Trio run ends")
        # Waiters share one SystemExit or KeyboardInterrupt: the operator would raise several copies as a group
        error = copied(self._error) if self._is_shared and isinstance(self._error, Exception) else self._error
        set_on(error, __traceback__=self._traceback)
        if not self._waiting:  # no cycle of the exception and this object, which a frame of its traceback has
            self._error = self._traceback = None
        context, is_suppressed = error.__context__, error.__suppress_context__
        try:
            raise error
        finally:
            set_on(error, __context__=context, __suppress_context__=is_suppressed)
            del error


class CallTasks:
    """The tasks that make shared calls.

    They are system tasks, because a policy has no nursery: its `open` and `close` may be called from different tasks.

    A task and a cancel scope for each call would cost several times what a fast call costs. So, from `open` to `close`,
    a task that has made a call waits for another one.

    Args:
        name: The name of each task.

    Attributes:
        is_open: Whether tasks are reused.
        idle: Those that wait for a call.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self.is_open = False
        self.idle: list[CallTask] = []

    def open(self) -> None:
        """Reuse tasks from now on."""
        self.is_open = True

    async def close(self) -> None:
        """End the idle tasks. Each of the others ends after its call."""
        self.is_open = False
        idle, self.idle = self.idle, []
        for each in idle:
            trio.lowlevel.reschedule(each.task)
        with trio.CancelScope(shield=True):  # short, because the tasks only return
            for each in idle:
                if not each.ended.is_set():  # they end in one pass of the scheduler, and a wait would take another one
                    await each.ended.wait()

    def start(self, function: Callable[[], Awaitable[R]]) -> SharedCall[R]:
        """Start a call of the function for the present task, with its context variables."""
        if self.idle:
            found = self.idle.pop()
            trio.lowlevel.reschedule(found.task)
        else:
            found = CallTask(self)
            found.task = trio.lowlevel.spawn_system_task(found.run, name=self._name)
        register_shared_call(found.task)
        found.call = call = SharedCall(function, found.scope)
        return call


@dataclass(eq=False, slots=True)
class CallTask:
    """A task that makes shared calls, one after another, in one cancel scope.

    A call that raises or is cancelled is its last one, because that ends the scope.

    Args:
        tasks: Where it waits while it is idle.

    Attributes:
        call: The running one. None: the task is idle, or about to end.
        task: Trio's task.
    """

    tasks: CallTasks
    scope: trio.CancelScope = field(default_factory=trio.CancelScope, init=False)
    ended: trio.Event = field(default_factory=trio.Event, init=False)
    call: SharedCall[Any] | None = field(default=None, init=False)
    task: trio.lowlevel.Task = field(init=False)

    async def run(self) -> None:
        """Make calls until no other one comes."""
        try:
            with self.scope:
                while self.call is not None:
                    self._end((await self.call.function(),))
                    if self.tasks.is_open:
                        self.tasks.idle.append(self)
                        await trio.lowlevel.wait_task_rescheduled(self._leave)
        except trio.Cancelled:  # the Trio run ends
            raise
        except BaseException as error:  # noqa: BLE001 - in a system task it would end the Trio run
            self._end(error=error)
        finally:
            self._end()
            self.ended.set()

    def _end(self, result: tuple[Any] | None = None, error: BaseException | None = None) -> None:
        """End the running call, if there is one."""
        call, self.call = self.call, None
        if call is not None:
            remove_shared_call()
            call.end(result, error)

    def _leave(self, _: object) -> trio.lowlevel.Abort:
        """The Trio run ends, or the last call was to be cancelled."""
        self.tasks.idle.remove(self)
        return trio.lowlevel.Abort.SUCCEEDED
