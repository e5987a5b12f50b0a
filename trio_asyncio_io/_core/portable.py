"""Pickling of exceptions whose own pickling fails or loses data."""

from __future__ import annotations

import pickle
from itertools import pairwise
from typing import Any

from .probe import attribute_of, text_of

__all__ = ["LostError", "chain_of", "chained", "portable"]

_BY_IDENTITY: Any = object.__eq__


class LostError(Exception):
    """Replaces an exception that cannot be pickled. The message has that exception's type name and message."""


def chain_of(error: BaseException) -> list[Any]:
    """Picklable replacements for the exception and its chain of causes. A plain pickle drops the causes."""
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and all(cause is not seen for seen in chain):
        chain.append(cause)
        cause = cause.__cause__
    return [portable(link) for link in chain]


def chained(chain: list[Any]) -> Any:
    """Link an unpickled chain, and return its first exception."""
    for error, cause in pairwise(chain):
        BaseException.__setattr__(error, "__cause__", cause)  # works for a frozen dataclass, too
    return chain[0]


def portable(error: BaseException) -> Any:
    """The exception itself, if its type, message, arguments and notes survive pickling; else a replacement.

    The first replacement unpickles without calling `__init__`, which often takes other arguments than `args`. An
    exception that cannot be pickled or unpickled becomes a `LostError`; in a group, only such members do.
    """
    is_refused = False
    try:
        if _are_equal(error, _through_pickle(error)):
            return error
    except Exception:  # noqa: BLE001 - a class's own pickling may raise anything
        is_refused = not isinstance(error, BaseExceptionGroup)
    try:
        if not is_refused and _are_equal(error, _through_pickle(rebuilt := _Rebuilt(error))):
            return rebuilt
    except Exception:  # noqa: BLE001, S110 - as above
        pass
    return _lost(error)


class _Rebuilt:
    """Unpickles as the exception, without calling its `__init__`."""

    def __init__(self, error: BaseException) -> None:
        arguments = error.args
        if isinstance(error, BaseExceptionGroup):
            arguments = error.message, [portable(member) for member in error.exceptions]
        self._parts = type(error), arguments, dict(vars(error))

    def __reduce__(self) -> Any:
        return _rebuild, self._parts


def _rebuild(kind: type[BaseException], arguments: tuple[Any, ...], attributes: dict[str, Any]) -> BaseException:
    error = kind.__new__(kind, *arguments)
    vars(error).update(attributes)
    return error


def _lost(error: BaseException) -> LostError:
    lost = LostError(f"{type(error).__name__}: {text_of(error)}")
    notes = attribute_of(error, "__notes__")
    for note in notes if isinstance(notes, list) else ():
        if isinstance(note, str):
            lost.add_note(note)
    return lost


def _through_pickle(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))  # noqa: S301 - our own bytes


def _are_equal(error: BaseException, copy: Any) -> bool:
    if type(copy) is not type(error) or text_of(copy) != text_of(error):
        return False
    if attribute_of(copy, "__notes__") != attribute_of(error, "__notes__"):
        return False
    if isinstance(error, BaseExceptionGroup) and isinstance(copy, BaseExceptionGroup):
        return all(
            type(copied) is LostError or _are_equal(member, copied)
            for member, copied in zip(error.exceptions, copy.exceptions, strict=True)
        )
    return len(copy.args) == len(error.args) and all(map(_are_alike, error.args, copy.args))


def _are_alike(one: Any, other: Any) -> bool:
    """Whether two arguments are equal. Where `==` compares identities, the same type is enough."""
    if type(one) is not type(other):
        return False
    if type(one).__eq__ is _BY_IDENTITY:
        return True
    try:
        if one == other:
            return True
    except Exception:  # noqa: BLE001, S110 - an array's comparison is not a bool
        pass
    return repr(one) == repr(other)  # NaN is not equal to itself
