"""The observer of rows: what the user's observer is told of, where the operator's elements are our rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trio_asyncio_io import Observer, StreamRecord

__all__ = ["of_rows"]

HOOKS = [name for name, member in vars(Observer).items() if callable(member)]


def of_rows(observer: Observer) -> Observer:
    """The observer, for an operator of rows: as elements it sees the tuples of the input columns' values."""
    hooks = {name: staticmethod(_of_row(getattr(observer, name))) for name in HOOKS}
    made: Observer = type("RowObserver", (Observer,), hooks)()
    return made


def _of_row(hook: Callable[..., None]) -> Callable[..., None]:
    def told(sequence: int, element: Any, *more: Any) -> None:
        row = element.value if isinstance(element, StreamRecord) else element
        hook(sequence, row.inputs, *more)

    return told
