"""The policy: a function around a function, with the same life."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from .._elements import describe
from .._function import AsyncFunction, as_function

__all__ = ["Policy"]


class Policy(AsyncFunction[Any, Any]):
    """What the keyed policies share: the inner function, opened and closed with this one, and the key.

    A policy pickles as what it was made of; what it remembers stays behind.

    Args:
        function: An async callable or an `AsyncFunction`, of one or more arguments.
        key: The arguments -> hashable; equal keys are the same call. None: the arguments themselves.
    """

    def __init__(self, function: Any, *, key: Callable[..., Hashable] | None = None) -> None:
        self.function = function
        self._inner = as_function(function)
        if callable(on_timeout := getattr(self._inner, "timeout", None)):
            self.timeout = on_timeout  # what the operator asks, and only if it is there
        self._key = key

    async def __call__(self, *arguments: Any) -> Any:
        """The same as `invoke`, so that a policy is a callable too."""
        return await self.invoke(*arguments)

    async def open(self) -> None:
        """Open the inner function."""
        if hasattr(self._inner, "open"):
            await self._inner.open()

    async def close(self) -> None:
        """Close the inner function."""
        if hasattr(self._inner, "close"):
            await self._inner.close()

    def key_of(self, arguments: tuple[Any, ...]) -> Hashable:
        """The key of a call.

        Raises:
            TypeError: The arguments cannot be hashed; says what to do.
        """
        key = arguments if self._key is None else self._key(*arguments)
        try:
            hash(key)
        except TypeError:
            name = type(self).__name__
            raise TypeError(f"{name} needs a hashable key, and {describe(key)} is none: give {name} key=") from None
        return key

    def __repr__(self) -> str:
        return f"{type(self).__name__}({describe(self.function)})"
