"""The adapter `in_thread`: blocking callables. Also the checks and errors that several adapters share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

import trio

from .._core.describe import describe
from .._function import Wrapper, is_async

__all__ = ["cancelled_by_asyncio", "check_synchronous", "in_thread"]

R = TypeVar("R")


class in_thread(Wrapper, Generic[R]):  # noqa: N801 - used like a function
    """A blocking callable as an async function. Each call runs in a thread of its own.

    The threads come from Trio's cache of threads. They do not count towards Trio's default limit of 40: the operator's
    capacity is the limit.

    Args:
        function: A blocking callable. It may use locks, sockets and `time.sleep`, but not Trio.

    Cancellation: the call ends immediately, and its slot is free. Python cannot stop a thread, so the function runs to
    its end, and its result is ignored: give it a timeout of its own.

    Raises:
        TypeError: The function is not callable, or it is async.
        RuntimeError: From a call: the function raised `asyncio.CancelledError`, which is the cause.

    Example:
        async with ordered_wait(urls, in_thread(requests.get), timeout=5.0) as results:
            ...
    """

    def __init__(self, function: Callable[..., R]) -> None:
        check_synchronous(function, "in_thread", "a blocking callable")
        self.function = function

    async def __call__(self, *arguments: Any) -> R:
        """Call the function in a thread and return its result."""
        limiter = trio.CapacityLimiter(1)
        call = partial(self.function, *arguments)
        try:
            return await trio.to_thread.run_sync(call, abandon_on_cancel=True, limiter=limiter)
        except asyncio.CancelledError as error:
            raise cancelled_by_asyncio(self.function) from error

    def __repr__(self) -> str:
        return f"in_thread({describe(self.function)})"


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


def cancelled_by_asyncio(function: object) -> RuntimeError:
    """The error to raise from an `asyncio.CancelledError`, which is not an `Exception` and would end the operator."""
    return RuntimeError(f"{describe(function)} was cancelled inside asyncio, not by the operator")
