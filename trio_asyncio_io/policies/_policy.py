"""The base class of policies."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from typing import Any, TypeAlias, TypeVar

from .._core.describe import describe
from .._function import AsyncFunction, Wrapper, as_function, awaitable_from
from ._distinct_key import distinct_key
from ._users import Users

__all__ = ["Policy", "Wrapped"]

R = TypeVar("R")

Wrapped: TypeAlias = Callable[..., Awaitable[R]] | AsyncFunction[Any, R]


class Policy(Wrapper, AsyncFunction[Any, R]):
    """A function around an inner function, which is opened and closed with it.

    Several operators may use one policy at the same time: the first one opens it, and the last one closes it. A policy
    is pickled as its function and options; its state is not pickled.

    Args:
        function: An async callable or an `AsyncFunction`, of one or more arguments.
        key: The arguments -> hashable. Calls with equal keys are the same call. None: the arguments themselves.
        options: The other options of the policy, for pickling.
    """

    def __init__(self, function: Any, *, key: Callable[..., Hashable] | None = None, **options: Any) -> None:
        self.function = function
        self._inner = as_function(function)
        if callable(timeout := getattr(self._inner, "timeout", None)):
            self.timeout = timeout  # the operator checks whether it exists
        self._users = Users()
        self._key = key
        self._options = options if key is None else {"key": key, **options}

    def __reduce__(self) -> Any:
        return _recreate, (type(self), self.function, self._options)

    async def __call__(self, *arguments: Any) -> R:
        """The same as `invoke`, so that a policy is a callable too."""
        return await self.invoke(*arguments)

    async def open(self) -> None:
        """Open the inner function, unless another operator has opened it. Waits while another operator does so."""
        await self._users.add(self._open)

    async def close(self) -> None:
        """Close the inner function, unless another operator still uses it."""
        await self._users.remove(self._close)

    async def _open(self) -> None:
        """Open the policy for its first user."""
        if hasattr(self._inner, "open"):
            await self._inner.open()

    async def _close(self) -> None:
        """Close the policy after its last user."""
        if hasattr(self._inner, "close"):
            await self._inner.close()

    def key_of(self, arguments: tuple[Any, ...]) -> Hashable:
        """The key of a call. Keys of different types differ, such as 1, 1.0 and True.

        Raises:
            TypeError: The arguments are not hashable, and the policy needs a `key`.
        """
        key = arguments if self._key is None else self._key(*arguments)
        try:
            hash(key)
        except TypeError:
            name = type(self).__name__
            raise TypeError(f"{name} needs a hashable key, got {describe(key)}: give {name} key=") from None
        return distinct_key(key)

    def _call(self, *arguments: Any) -> Any:
        """The inner function's awaitable."""
        return awaitable_from(self._inner.invoke, *arguments)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({describe(self.function)})"


def _recreate(policy: Any, function: Any, options: dict[str, Any]) -> Any:
    return policy(function, **options)
