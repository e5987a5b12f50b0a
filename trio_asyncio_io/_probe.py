"""Probes: read exceptions of other libraries without raising, whatever their properties do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = ["attribute_of", "leaves_of"]


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
        if isinstance(error, BaseExceptionGroup):
            rest += reversed(error.exceptions)
        else:
            yield error
