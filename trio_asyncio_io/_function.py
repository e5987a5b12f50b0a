"""The function: what the user supplies, as a callable or as an object with a life of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from inspect import isawaitable, iscoroutinefunction
from types import CoroutineType
from typing import Any, Generic, TypeAlias, TypeVar

from ._core.describe import describe
from ._errors import NotAsyncError

__all__ = ["AsyncFunction", "Function", "Wrapper", "as_function", "awaitable_from", "innermost", "is_async"]

T = TypeVar("T")
R = TypeVar("R")
T_contra = TypeVar("T_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)


class AsyncFunction(ABC, Generic[T_contra, R_co]):
    """A function that opens something first and closes it at the end (Flink's `RichAsyncFunction`).

    `open` runs before the first invocation, `close` after the last one has ended or unwound, however the
    operator ended. Any object with an async `invoke` will do; this class says what may stand beside it.

    A method `async timeout(self, value) -> result` is to this object what `on_timeout` is to a callable.

    Example:
        class Lookup(AsyncFunction[str, int]):
            async def open(self) -> None:
                self.client = httpx.AsyncClient()

            async def invoke(self, value: str) -> int:
                return (await self.client.get(f"http://127.0.0.1/{value}")).json()

            async def close(self) -> None:
                await self.client.aclose()
    """

    async def open(self) -> None:
        """Acquire what the invocations share. An exception here comes out of the `async with` as itself."""

    @abstractmethod
    async def invoke(self, *args: Any, **kwargs: Any) -> R_co:
        """The result for one value. At the deadline it is cancelled.

        Override it with the parameters that the function has: `value` for the operator, one for each input
        column for a UDF. It stands here so open that a type checker accepts either.
        """

    async def close(self) -> None:
        """Release it. Runs even when cancelled, for at most 30 seconds; not called if `open` raised."""


Function: TypeAlias = Callable[[T], Awaitable[R]] | AsyncFunction[T, R]


class Wrapper:
    """An object around a function that leaves its identity as it is: a policy, an adapter or a recorder."""

    function: Any

    @property
    def wrapped(self) -> Any:
        """The function inside, as given."""
        return self.function


class _Callable(AsyncFunction[Any, Any]):
    """A bare callable as an `AsyncFunction`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.invoke = function  # type: ignore[method-assign]

    async def invoke(self, value: Any) -> Any:
        """Replaced by the callable itself, so that it costs no frame of its own."""


def as_function(function: Any) -> Any:
    """The function as an object with `invoke`, `open` and `close`.

    Raises:
        TypeError: It is neither callable nor has it an `invoke`.
    """
    if not isinstance(function, type) and _has_invoke(function):
        return function
    if isinstance(function, type) or not callable(function):
        hint = ": give an instance, not the class" if isinstance(function, type) else ""
        raise TypeError(f"the function must be an async callable or an AsyncFunction, got {describe(function)}{hint}")
    return _Callable(function)


def _has_invoke(function: Any) -> bool:
    """Whether it has an `invoke` of its own. A mock has every attribute, but lists only its own."""
    return "invoke" in dir(function) or (not callable(function) and hasattr(function, "invoke"))


def awaitable_from(function: Any, *arguments: Any) -> Any:
    """What the call gives, which must be awaitable.

    Raises:
        NotAsyncError: It is not; says how to adapt the function.
    """
    result = function(*arguments)
    if type(result) is not CoroutineType and not isawaitable(result):
        raise NotAsyncError.for_result(function, result)
    return result


def innermost(function: Any) -> Any:
    """The user's own function, below all wrappers."""
    while isinstance(function, Wrapper):
        function = function.wrapped
    return function


def is_async(function: Any) -> bool:
    """Whether the callable is declared async, by itself or by its `__call__`, or has an async `invoke`."""
    return any(
        iscoroutinefunction(each)
        for each in (function, getattr(function, "__call__", None), getattr(function, "invoke", None))  # noqa: B004
    )
