"""Opens and closes whatever `make` of a shared resource returns."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from inspect import isawaitable
from typing import Any

import trio

__all__ = ["opened"]

# Their context managers acquire them
_LOCKS = (trio.Lock, trio.StrictFIFOLock, trio.Semaphore, trio.CapacityLimiter, trio.Condition)


@asynccontextmanager
async def opened(name: str, made: Any) -> AsyncIterator[Any]:
    """A resource, open during the block.

    Args:
        name: In errors.
        made: A context manager, async or not; an awaitable of a resource; an object with `open`, `invoke` and `close`,
            such as a policy; an object with `aclose` or `close`; or any other object.

    Raises:
        TypeError: The value of the context manager is None.
    """
    kind = type(made)
    if hasattr(kind, "__aenter__") and not issubclass(kind, _LOCKS):
        async with made as value:
            yield _checked(name, value)
    elif hasattr(kind, "__enter__"):
        with made as value:
            yield _checked(name, value)
    elif isawaitable(made):
        async with opened(name, await made) as value:
            yield value
    else:
        await _call(getattr(made, "open", None) if hasattr(made, "invoke") else None)
        try:
            yield made
        finally:
            await _call(getattr(made, "aclose", None) or getattr(made, "close", None))


def _checked(name: str, value: Any) -> Any:
    if value is None:
        raise TypeError(
            f"the context manager of the shared resource {name!r} returns None when it is entered: let it return the "
            "resource"
        )
    return value


async def _call(method: Callable[[], Any] | None) -> None:
    result = method() if callable(method) else None
    if isawaitable(result):
        await result
