"""Probes: read exceptions of other libraries without raising, whatever their properties do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

__all__ = ["attribute_of", "leaves_of", "text_of"]


def attribute_of(owner: object, name: str) -> Any:
    """The attribute's value; None if there is no such attribute or reading it raises."""
    try:
        return getattr(owner, name, None)
    except Exception:  # noqa: BLE001 - a property may raise anything, as httpx's `request` does
        return None


def leaves_of(error: BaseException) -> Iterator[BaseException]:
    """The exceptions of a group and of the groups inside it; any other exception alone."""
    rest = [error]
    while rest:
        error = rest.pop()
        if issubclass(type(error), BaseExceptionGroup):  # not `isinstance`, which reads `__class__`
            rest += reversed(cast(BaseExceptionGroup[BaseException], error).exceptions)
        else:
            yield error


def text_of(error: BaseException) -> str:
    """The exception's message; a description if its `__str__` raises."""
    try:
        return str(error)
    except Exception as problem:  # noqa: BLE001 - it must not hide the exception that is being reported
        return f"<{type(error).__name__} whose str raised {type(problem).__name__}>"
