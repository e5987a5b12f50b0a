"""Notes: what an operator adds to the exceptions that functions raise."""

from __future__ import annotations

from itertools import count
from typing import Any

from .probe import attribute_of

__all__ = ["Notes"]

MAX_NOTES = 10

_numbers = count()


class Notes:
    """The notes of one operator.

    A function may raise one exception again and again: for several elements, or in several runs. So an operator adds a
    text once, adds at most `MAX_NOTES` texts, and removes the notes of earlier operators. Those of an operator inside
    the function stay, for that one was made later.
    """

    def __init__(self) -> None:
        self._number = next(_numbers)

    def add(self, error: BaseException, text: str) -> None:
        """Add a note to the exception; without effect if the exception does not take notes."""
        notes = attribute_of(error, "__notes__")
        if notes is not None and not isinstance(notes, list):
            return
        kept = [note for note in notes or () if not self._is_outdated(note)]
        own = [note for note in kept if isinstance(note, _Note) and note.operator == self._number]
        if text not in own and len(own) < MAX_NOTES:
            kept.append(_Note.of(self._number, text))
        try:
            # Not `add_note`: the exception may be a frozen dataclass, and a copy of it may share the list
            BaseException.__setattr__(error, "__notes__", kept)
        except Exception:  # noqa: BLE001, S110 - a note must not replace the exception that it explains
            pass

    def _is_outdated(self, note: Any) -> bool:
        return isinstance(note, _Note) and note.operator < self._number


class _Note(str):
    """A note that knows its operator's number; a pickle holds the text only."""

    __slots__ = ("operator",)
    operator: int

    @classmethod
    def of(cls, operator: int, text: str) -> _Note:
        note = cls(text)
        note.operator = operator
        return note

    def __reduce__(self) -> Any:
        return str, (str(self),)
