"""The boundary: where the operator calls the user's code, which Ctrl-C may interrupt.

The operator protects its own tasks and methods from `KeyboardInterrupt` (`trio.lowlevel.enable_ki_protection`), so
no step of the ledger is left half done: Trio raises the interrupt at the main task's next checkpoint. Protection covers
everything that a protected frame calls. User code therefore runs behind one of the frames below, which end the
protection: Trio raises the interrupt in it at once, even if it never reaches a checkpoint.

What user code has returned is never lost to an interrupt. CPython handles signals at the start of a frame, at a
backward jump and after a call of a C function, but not between the end of `await x` and a `return`, nor between a value
of `yield from` and its consumer.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from trio.lowlevel import disable_ki_protection

from ._function import awaitable_from

__all__ = ["InterruptibleAsyncIterator", "awaited", "interruptible", "interruptible_enumerate"]

T = TypeVar("T")
R = TypeVar("R")


def interruptible(function: Callable[..., R]) -> Callable[..., R]:
    """The synchronous function, which an interrupt may end at any point."""

    @disable_ki_protection
    def call(*arguments: Any) -> R:
        return function(*arguments)

    return call


@disable_ki_protection
async def awaited(function: Callable[..., Any], *arguments: Any) -> Any:
    """The result of an async function.

    Raises:
        NotAsyncError: Its call did not return an awaitable.
    """
    return await awaitable_from(function, *arguments)


@disable_ki_protection
def interruptible_enumerate(source: Iterable[T]) -> Iterator[tuple[int, T]]:
    """The elements of the source, numbered from 1. The source is never closed."""
    # Not `yield from source`: to close this generator would close a generator that it delegates to
    yield from enumerate(source, start=1)


class InterruptibleAsyncIterator(Generic[T]):
    """The elements of an async source, which is never closed."""

    def __init__(self, source: AsyncIterable[T]) -> None:
        self._next = aiter(source).__anext__

    def __aiter__(self) -> AsyncIterator[T]:
        return self

    @disable_ki_protection
    async def __anext__(self) -> T:
        return await self._next()
