"""HeaderSource: the headers that all rows of a column have in common, as a mapping or from a function."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from inspect import isawaitable
from typing import Any, TypeAlias

from trio_asyncio_io import AsyncFunction

from ._requests import TextPairs, check_header

Pairs: TypeAlias = Mapping[str, str]
CommonHeaders: TypeAlias = Pairs | Callable[[], Pairs | Awaitable[Pairs]] | AsyncFunction[Any, Pairs]


class HeaderSource:
    """Headers from a function, which is called in the worker for each attempt.

    Its repr, which appears in errors and logs, shows nothing that the function captures.

    Args:
        function: Without arguments; returns a mapping of names to values, or an awaitable of one. An `AsyncFunction`,
            such as a policy, is opened and closed.
    """

    def __init__(self, function: Any) -> None:
        self._function = function

    def __repr__(self) -> str:
        return "<headers from a function>"

    async def open(self) -> None:
        """Open the function, if it can be opened."""
        if hasattr(self._function, "open"):
            await self._function.open()

    async def close(self) -> None:
        """Close the function, if it can be closed."""
        if hasattr(self._function, "close"):
            await self._function.close()

    async def current(self) -> TextPairs:
        """Return the headers for one attempt.

        Raises:
            TypeError, ValueError: They cannot be sent. The message shows no value.
            Exception: Any error of the function.
        """
        given = getattr(self._function, "invoke", self._function)()
        if isawaitable(given):
            given = await given
        return checked(given, "the result of headers")


def is_function(headers: object) -> bool:
    """Whether headers are given as a function."""
    return callable(headers) or hasattr(type(headers), "invoke")  # a Spark column has every attribute


def checked(headers: Any, label: str = "headers") -> TextPairs:
    """Return headers in the order of their names.

    Args:
        headers: A mapping of names to values.
        label: What it is, for messages.

    Raises:
        TypeError, ValueError: They cannot be sent. The message shows no value.
    """
    if not isinstance(headers, Mapping):
        raise TypeError(f"{label} must be a mapping of names to values, got a {type(headers).__name__}")
    for name, value in headers.items():
        check_header(name, value)
    return tuple(sorted(headers.items()))
