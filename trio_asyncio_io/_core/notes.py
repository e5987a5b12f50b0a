"""The exceptions of functions: read without raising, and with notes that name the element and the attempt."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any, cast

__all__ = ["Notes", "attribute_of", "leaves_of", "text_of"]


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


MAX_NOTES = 10

_numbers = count()


class Notes:
    """The notes of one operator.

    A function may raise one exception object several times: for several elements, or in several runs. So an operator
    adds the same text only once, adds at most `MAX_NOTES` texts, and removes the notes of operators that were created
    before it. Notes of an operator inside the function stay, because that one was created later.
    """

    def __init__(self) -> None:
        self._number = next(_numbers)

    def add(self, error: BaseException, text: str) -> None:
        """Add a note to the exception. Does nothing if the exception does not accept notes."""
        notes = attribute_of(error, "__notes__")
        if notes is not None and not isinstance(notes, list):
            return
        current = [note for note in notes or () if not self._is_outdated(note)]
        own = [note for note in current if isinstance(note, _Note) and note.operator == self._number]
        if text not in own and len(own) < MAX_NOTES:
            current.append(_Note.of(self._number, text))
        try:
            # Not `add_note`: the exception may be a frozen dataclass, and a copy of it may share the list
            BaseException.__setattr__(error, "__notes__", current)
        except Exception:  # noqa: BLE001, S110 - a note must not replace the exception that it explains
            pass

    def _is_outdated(self, note: Any) -> bool:
        return isinstance(note, _Note) and note.operator < self._number


class _Note(str):
    """A note with its operator's number. It pickles as plain text."""

    __slots__ = ("operator",)
    operator: int

    @classmethod
    def of(cls, operator: int, text: str) -> _Note:
        note = cls(text)
        note.operator = operator
        return note

    def __reduce__(self) -> Any:
        return str, (str(self),)
