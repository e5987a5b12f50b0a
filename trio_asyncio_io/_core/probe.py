"""Safe access to exceptions of other libraries, whose properties and methods may raise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

__all__ = ["attribute_of", "leaves_of", "text_of"]


def attribute_of(owner: object, name: str) -> Any:
    """The attribute's value; None if it is missing or reading it raises."""
    try:
        return getattr(owner, name, None)
    except Exception:  # noqa: BLE001 - a property may raise anything, as httpx's `request` does
        return None


def leaves_of(error: BaseException) -> Iterator[BaseException]:
    """The exceptions of a group and of its nested groups; any other exception alone."""
    pending = [error]
    while pending:
        error = pending.pop()
        if issubclass(type(error), BaseExceptionGroup):  # not `isinstance`, which reads `__class__`
            pending += reversed(cast(BaseExceptionGroup[BaseException], error).exceptions)
        else:
            yield error


def text_of(error: BaseException) -> str:
    """The exception's message; a placeholder if its `__str__` raises."""
    try:
        return str(error)
    except Exception as problem:  # noqa: BLE001 - it must not hide the exception that is being reported
        return f"<{type(error).__name__} whose str raised {type(problem).__name__}>"
