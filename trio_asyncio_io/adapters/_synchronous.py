"""The check for synchronous functions, which most adapters take."""

from __future__ import annotations

from typing import Any

from .._core.describe import describe
from .._function import is_async

__all__ = ["check_synchronous"]


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
