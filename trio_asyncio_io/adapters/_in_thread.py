"""The adapter `in_thread`: blocking callables. Also the check that several adapters share."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Generic, ParamSpec, TypeVar

import trio

from .._operator.function import Wrapper, is_async
from .._values.describe import describe

__all__ = ["check_synchronous", "in_thread"]

P = ParamSpec("P")
R = TypeVar("R")


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
        check_synchronous(function, "in_thread", "a blocking callable")
        self.function: Callable[P, R] = function

    async def __call__(self, *arguments: P.args, **keywords: P.kwargs) -> R:
        """Call the function in a thread and return its result."""
        limiter = trio.CapacityLimiter(1)
        call = partial(self.function, **keywords) if keywords else self.function
        return await trio.to_thread.run_sync(call, *arguments, abandon_on_cancel=True, limiter=limiter)


def check_synchronous(function: Any, adapter: str, takes: str) -> None:
    """Check that the function is a synchronous callable.

    Raises:
        TypeError: It is not. The message names the adapter to use instead.
    """
    if is_async(function):
        raise TypeError(
            f"{describe(function)} is async already: {adapter} takes {takes}. Use a function for Trio without an "
            "adapter, and one for asyncio with trio_asyncio_io.adapters.from_asyncio(function)"
        )
    if not callable(function):
        raise TypeError(f"{adapter} takes {takes}, got {describe(function)}")
