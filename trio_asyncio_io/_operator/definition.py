"""Definitions: whether two functions are the same, such as one and its copy by a pickle; see `sharing.shared`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pickle import HIGHEST_PROTOCOL
from types import CellType, CodeType, FunctionType
from typing import Any

_PLAIN = frozenset({type(None), bool, int, float, complex, str, bytes, set, frozenset, CodeType})


def parts_of(value: Any, above: frozenset[int] = frozenset()) -> Any:
    """Something that is equal for a value and its copies by a pickle.

    Args:
        value: A function that makes a resource, or a part of it.
        above: The objects that it is a part of, by id.
    """
    kind = type(value)
    if kind in _PLAIN or isinstance(value, type):
        return kind, value
    if id(value) in above:
        return kind, None
    above |= {id(value)}
    if kind is dict:
        return kind, {(type(key), key): parts_of(each, above) for key, each in value.items()}
    return kind, [parts_of(each, above) for each in _stored(value)]


def _stored(value: Any) -> Iterable[Any]:
    """What a pickle stores of a value, and of a function also its code. Its own id if it cannot be pickled."""
    if type(value) in {tuple, list}:
        return value  # type: ignore[no-any-return]
    if isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or () if cell != CellType()]  # one may be empty
        return value.__module__, value.__qualname__, value.__code__, value.__defaults__, value.__kwdefaults__, cells
    try:
        stored = value.__reduce_ex__(HIGHEST_PROTOCOL)
        if isinstance(stored, str):  # the name of a function that is written in C
            return getattr(value, "__module__", None), stored
        return [list(each) if isinstance(each, Iterator) else each for each in stored]
    except Exception:  # noqa: BLE001 - a `__reduce__` may raise anything
        return (id(value),)
