"""The adapter `in_thread`: blocking callables. Also the checks and errors that several adapters share."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import CoroutineType
from typing import Any, Generic, ParamSpec, TypeVar

import trio

from .._operator.function import Wrapper, is_async
from .._values.describe import describe

__all__ = ["check_synchronous", "in_thread"]

P = ParamSpec("P")
R = TypeVar("R")

IN_THREAD = ("in_thread", "a blocking callable")


class in_thread(Wrapper, Generic[P, R]):  # noqa: N801 - used like a function
    """A blocking callable as an async function. Each call runs in a thread of its own.

    The threads come from Trio's cache of threads. They do not count towards Trio's default limit of 40: the operator's
    capacity is the limit.

    Args:
        function: A blocking callable. It may use locks, sockets and `time.sleep`, but not Trio.

    Cancellation: the call ends immediately, and its slot is free. Python cannot stop a thread, so the function runs to
    its end, and its result is ignored: give it a timeout of its own.

    Raises:
        TypeError: The function is not callable, or it is async. A function that is not declared async, but returns a
            coroutine, raises it from its first call.

    Example:
        async with ordered_wait(urls, in_thread(requests.get), timeout=5.0) as results:
            ...
    """

    def __init__(self, function: Callable[P, R]) -> None:
        check_synchronous(function, *IN_THREAD)
        self.function: Callable[P, R] = function

    async def __call__(self, *arguments: P.args, **keywords: P.kwargs) -> R:
        """Call the function in a thread and return its result."""
        limiter = trio.CapacityLimiter(1)
        call = partial(self.function, *arguments, **keywords)
        (result,) = await trio.to_thread.run_sync(_in_tuple, call, abandon_on_cancel=True, limiter=limiter)
        if isinstance(result, CoroutineType):
            result.close()
            raise _is_async_already(self.function, *IN_THREAD)
        return result


def _in_tuple(call: Callable[[], R]) -> tuple[R]:
    """The result in a tuple, because Trio has another message for a coroutine."""
    return (call(),)


def check_synchronous(function: Any, adapter: str, takes: str) -> None:
    """Check that the function is a synchronous callable.

    Raises:
        TypeError: It is not. The message names the adapter to use instead.
    """
    if is_async(function):
        raise _is_async_already(function, adapter, takes)
    if not callable(function):
        raise TypeError(f"{adapter} takes {takes}, got {describe(function)}")


def _is_async_already(function: object, adapter: str, takes: str) -> TypeError:
    return TypeError(
        f"{describe(function)} is async already: {adapter} takes {takes}. Use a function for Trio without an "
        "adapter, and one for asyncio with trio_asyncio_io.adapters.from_asyncio(function)"
    )
