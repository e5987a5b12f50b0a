"""The synchronous function: what most adapters take."""

from __future__ import annotations

from typing import Any

from .._core.describe import describe
from .._function import is_async

__all__ = ["check_synchronous"]


def check_synchronous(function: Any, adapter: str, takes: str) -> None:
    """Refuse what is not a synchronous callable.

    Raises:
        TypeError: Names the function, and the adapter that it needs.
    """
    if is_async(function):
        raise TypeError(
            f"{describe(function)} is async already: {adapter} takes {takes}. It needs no adapter if it is Trio's; "
            "if it is asyncio's: trio_asyncio_io.adapters.from_asyncio(function)"
        )
    if not callable(function):
        raise TypeError(f"{adapter} takes {takes}, got {describe(function)}")
