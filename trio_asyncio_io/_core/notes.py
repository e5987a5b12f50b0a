"""The exceptions of functions: read without raising, and with notes that name the element and the attempt."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, cast

__all__ = ["add_note", "attribute_of", "chain_of", "leaves_of", "set_on", "text_of"]


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


def chain_of(error: BaseException) -> list[BaseException]:
    """The exception and its causes."""
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and all(cause is not seen for seen in chain):
        chain.append(cause)
        cause = cause.__cause__
    return chain


def text_of(error: BaseException) -> str:
    """The exception's message; a placeholder if its `__str__` raises."""
    try:
        return str(error)
    except Exception as problem:  # noqa: BLE001 - it must not hide the exception that is being reported
        return f"<{type(error).__name__} whose str raised {type(problem).__name__}>"


def set_on(error: BaseException, **attributes: Any) -> None:
    """Set attributes of the exception, which may be a frozen dataclass."""
    for name, value in attributes.items():
        BaseException.__setattr__(error, name, value)


MAX_NOTES = 10


def add_note(error: BaseException, text: str) -> None:
    """Add a note to the exception, once. Does nothing if the exception does not accept notes.

    A function may raise one exception object for many elements, so it keeps only the latest `MAX_NOTES` notes.
    """
    notes = attribute_of(error, "__notes__") or []
    if isinstance(notes, list) and text not in notes:
        # Not `error.add_note`: a copy of the exception may share the list
        with suppress(Exception):  # a note must not replace the exception that it explains
            set_on(error, __notes__=[*notes, text][-MAX_NOTES:])
