"""The boundary between the operator and the user's code: Ctrl-C, and context variables.

Ctrl-C may interrupt the user's code, but never a step of the operator.

Trio raises `KeyboardInterrupt` in the frame that runs when the signal arrives, unless a caller has protected it
(`trio.lowlevel.enable_ki_protection`). Then the main task raises it at its next checkpoint. The innermost marked frame
decides. The operator protects its tasks and methods, so no step of the ledger is ever left half done. User code runs
below a frame that is marked with `disable_ki_protection`: one of those below, or a loop of the feeder or of a worker.
An interrupt ends it at once, even if it never reaches a checkpoint.

An interrupt never loses what user code has returned. CPython handles signals at the start of a frame, at a backward
jump and after a call of a C function. It handles none between the end of `await x` and a `return`, nor between the end
of `await x` and the start of f in `f(await x)`, nor between a C iterator's `next` and its consumer.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable
from contextvars import Context, copy_context
from operator import is_
from typing import Any, Generic, TypeVar

from trio.lowlevel import Task, disable_ki_protection

from ._function import awaitable_from

__all__ = ["BlockContext", "InterruptibleAsyncIterator", "awaited", "interruptible"]


T = TypeVar("T")
R = TypeVar("R")


def interruptible(function: Callable[..., R]) -> Callable[..., R]:
    """The same synchronous function, open to interrupts."""

    @disable_ki_protection
    def call(*arguments: Any) -> R:
        return function(*arguments)

    return call


@disable_ki_protection
async def awaited(function: Callable[..., Any], *arguments: Any) -> Any:
    """The result of an async function, which runs open to interrupts.

    Raises:
        NotAsyncError: Its call did not return an awaitable.
    """
    return await awaitable_from(function, *arguments)


class InterruptibleAsyncIterator(Generic[T]):
    """The elements of an async source, which runs open to interrupts and is never closed."""

    def __init__(self, source: AsyncIterable[T]) -> None:
        self._next = aiter(source).__anext__

    def __aiter__(self) -> AsyncIterator[T]:
        return self

    @disable_ki_protection
    async def __anext__(self) -> T:
        return await self._next()


class BlockContext:
    """The context of the task that enters the operator's block, as it is at that moment.

    A worker is one task and serves many elements. Between two of them its context is replaced by a new copy of this
    one, but only if the last invocation changed a variable: otherwise its context still equals a new copy.

    Attributes:
        size: The number of variables.
    """

    def __init__(self) -> None:
        self._context = copy_context()
        self._values = tuple(self._context.values())
        self.size = len(self._values)

    def run(self, function: Callable[[], None]) -> None:
        """Call the function in this context."""
        self._context.run(function)

    def is_changed_in(self, context: Context) -> bool:
        """Whether a copy of this context has different variables or values now."""
        # By identity: `==` would run user code, and an equal value may be another object
        return len(context) != self.size or not all(map(is_, context.values(), self._values))

    def renew(self, task: Task) -> bool:
        """Give the task a new copy if the last invocation changed a variable. Returns whether it did."""
        if len(task.context) == self.size and not (self.size and self.is_changed_in(task.context)):
            return False
        self.restore(task)
        return True

    def restore(self, task: Task) -> None:
        """Give the task a new copy, which Trio uses from the task's next checkpoint on."""
        task.context = self._context.copy()
