"""The user's function: an async callable, or an object that is opened and closed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from inspect import isawaitable, iscoroutine, iscoroutinefunction
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypeAlias, TypeVar

from .._values.describe import describe
from .errors import NotAsyncError

T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")
T_contra = TypeVar("T_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)


class AsyncFunction(ABC, Generic[T_contra, R_co]):
    """A function that acquires resources first and releases them at the end (Flink's `RichAsyncFunction`).

    `open` runs before the first invocation. `close` runs after the last one has ended or unwound, however the operator
    ended. You need not inherit from this class: an object with an async `invoke` is enough, and the other methods are
    optional.

    A method `async timeout(self, value) -> result` replaces the result of an element that has timed out, like
    `on_timeout`.

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
        """Acquire the resources that the invocations share. An exception comes out of the `async with` as itself."""

    @abstractmethod
    async def invoke(self, *args: Any, **kwargs: Any) -> R_co:
        """Return the result for one value. It is cancelled at the deadline.

        Override it with the parameters of your function: `value` for the operator, one per input column for a UDF.
        """

    async def close(self) -> None:
        """Release the resources. Runs for at most 30 seconds, also during cancellation, but not if `open` raised."""


class Invokes(Protocol[P, R_co]):
    """An object with the parameters `P`. Its other methods are optional."""

    async def invoke(self, *arguments: P.args, **keywords: P.kwargs) -> R_co: ...


if TYPE_CHECKING:

    class OpenedFunction:
        """An `AsyncFunction` that is also a callable. A checker reads its parameters from `__call__` alone."""

        async def open(self) -> None: ...
        async def close(self) -> None: ...

else:
    OpenedFunction = AsyncFunction


Function: TypeAlias = Callable[[T], Awaitable[R]] | AsyncFunction[T, R]


class Wrapper:
    """A policy, an adapter or a recorder: an object around a function that it does not replace."""

    function: Any

    @property
    def wrapped(self) -> Any:
        """The wrapped function, as given."""
        return self.function

    def __repr__(self) -> str:
        return f"{type(self).__name__}({describe(self.wrapped)})"


class _Callable(AsyncFunction[Any, Any]):
    """A callable as an `AsyncFunction`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.invoke = function  # type: ignore[method-assign]

    async def invoke(self, value: Any) -> Any:
        """Replaced by the callable itself, which saves a frame per call."""


def as_function(function: Any) -> Any:
    """The function as an object with `invoke`, `open` and `close`.

    Raises:
        TypeError: It is neither callable nor has an `invoke`.
    """
    if not isinstance(function, type) and _has_invoke(function):
        return function
    if isinstance(function, type) or not callable(function):
        raise TypeError(
            f"the function must be an async callable or an AsyncFunction, got {describe(function)}{_hint(function)}"
        )
    return _Callable(function)


def _hint(function: Any) -> str:
    if isinstance(function, type):
        return ": give an instance, not the class"
    return ": give the function itself, without calling it" if iscoroutine(function) else ""


def _has_invoke(function: Any) -> bool:
    """Whether the object has an `invoke`. A mock has every attribute, but lists only those that it was given."""
    return "invoke" in dir(function) or (not callable(function) and hasattr(function, "invoke"))


class KnowsOutputs(ABC):
    """A function that has the outputs of some elements without a call, such as a UDF that skips nulls.

    Such an element keeps its place in the output, but takes no slot and passes no gate.
    """

    @abstractmethod
    def known(self, value: Any, /) -> Sequence[Any] | None:
        """The outputs of an element that needs no call, else None. An exception counts as the source's."""


def awaitable_from(function: Any, *arguments: Any) -> Any:
    """Call the function and return its awaitable. Raises the same error as `checked_awaitable`."""
    return checked_awaitable(function, function(*arguments))


def checked_awaitable(function: Any, result: Any) -> Awaitable[Any]:
    """Return what the function has returned, if it can be awaited.

    Raises:
        NotAsyncError: It cannot. The message explains how to adapt the function.
    """
    if type(result) is not CoroutineType and not isawaitable(result):  # the first test is fast, and usually enough
        raise NotAsyncError.for_result(describe(function), result)
    return result


def innermost(function: Any) -> Any:
    """The user's own function, inside all wrappers."""
    while isinstance(function, Wrapper):
        function = function.wrapped
    return function


def name_of(function: Any) -> str:
    """The name of the user's own function, or of its class, for messages."""
    function = innermost(function.invoke if isinstance(function, _Callable) else function)
    while isinstance(function, partial):
        function = innermost(function.func)
    return str(getattr(function, "__name__", type(function).__name__))


def is_async(function: Any) -> bool:
    """Whether the function, its `__call__` or its `invoke` is declared async."""
    return any(
        iscoroutinefunction(each)
        for each in (function, getattr(function, "__call__", None), getattr(function, "invoke", None))  # noqa: B004
    )
