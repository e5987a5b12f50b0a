"""The policy `single_flight`: concurrent calls with one key share one call, and a call that several tasks wait for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from contextvars import copy_context
from functools import partial
from types import TracebackType
from typing import Generic, ParamSpec, TypeVar

import trio
from trio.lowlevel import enable_ki_protection

from .._operator.calls import follow_creator
from .._values.notes import copied, set_on
from ._policy import Policy, Wrapped, by_position

P = ParamSpec("P")
R = TypeVar("R")


class SharedCall(Generic[R]):
    """A call that is cancelled when nobody waits for it any longer, and that never outlives its waiters.

    It runs in a task of its own, with the context variables of the task that created it. It is a system task, because a
    policy has no nursery: its `open` and `close` may be called from different tasks.

    The task that starts it must also wait for it. Create it, `start` it and `wait` for it without a checkpoint between.

    Args:
        call: Returns the awaitable. Called once, in the call's own task.
    """

    __slots__ = ("_call", "_context", "_ended", "_error", "_is_shared", "_result", "_scope", "_traceback", "_waiting")

    def __init__(self, call: Callable[[], Awaitable[R]]) -> None:
        self._call = call
        self._context = copy_context()
        self._scope = trio.CancelScope()
        self._ended = trio.Event()
        self._waiting = 0
        self._result: tuple[R] | None = None
        self._error: BaseException | None = None
        self._traceback: TracebackType | None = None
        self._is_shared = False

    @property
    def is_abandoned(self) -> bool:
        """Whether all waiters have left. The call is being cancelled, and nobody else may wait for it."""
        return self._scope.cancel_called

    @property
    def has_ended(self) -> bool:
        """Whether the call has returned, raised or unwound. A task that waits for it now gets its outcome."""
        return self._ended.is_set()

    def start(self, name: str) -> None:
        """Start the call's task.

        Args:
            name: The name of the task.
        """
        follow_creator(self._context)
        trio.lowlevel.spawn_system_task(self._run, name=name, context=self._context)

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

    async def _abandon(self) -> bool:
        """Cancel the call and wait until it has unwound. Returns whether it has an outcome nevertheless."""
        self._scope.cancel()
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
        context, is_suppressed = error.__context__, error.__suppress_context__
        try:
            raise error
        finally:
            set_on(error, __context__=context, __suppress_context__=is_suppressed)
            del error

    async def _run(self) -> None:
        try:
            with self._scope:
                result = await self._call()
                self._result = (result,)
        except trio.Cancelled:  # the Trio run ends
            raise
        except BaseException as error:  # noqa: BLE001 - in a system task it would end the Trio run
            self._error = error
            self._traceback = error.__traceback__ and error.__traceback__.tb_next  # without this frame
        finally:
            self._ended.set()


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
            call = SharedCall(partial(self._call, *values))
            call.start("trio_asyncio_io single flight")
            self._in_flight[key] = call
            self.calls += 1
        try:
            return await call.wait()
        finally:
            # Not as soon as the call has ended: until a waiter has its outcome, a new caller must not repeat the call
            if call.has_ended and self._in_flight.get(key) is call:
                del self._in_flight[key]
