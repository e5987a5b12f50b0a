"""Portable exceptions: what is pickled in place of an exception, so that an equal one comes out."""

from __future__ import annotations

import pickle
from itertools import pairwise
from typing import Any

from .probe import attribute_of, text_of

__all__ = ["LostError", "chain_of", "chained", "portable"]


_BY_IDENTITY: Any = object.__eq__


class LostError(Exception):
    """Replaces an exception that does not pickle; its message is the type and the message of that one."""


def chain_of(error: BaseException) -> list[Any]:
    """What to pickle in place of the exception, its cause, the cause's cause and so on: a pickle drops causes."""
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and all(cause is not each for each in chain):
        chain.append(cause)
        cause = cause.__cause__
    return [portable(each) for each in chain]


def chained(chain: list[Any]) -> Any:
    """The first exception of an unpickled chain, with its causes."""
    for error, cause in pairwise(chain):
        BaseException.__setattr__(error, "__cause__", cause)  # it may be a frozen dataclass
    return chain[0]


def portable(error: BaseException) -> Any:
    """What to pickle in place of an exception: itself, if its type, message, arguments and notes survive that.

    If they do not, it is made anew without its `__init__`, which often takes other arguments than those that it hands
    on. An exception that cannot be pickled or unpickled becomes a `LostError`. In a group, only such members do.
    """
    is_refused = False
    try:
        if _are_equal(error, _through_pickle(error)):
            return error
    except Exception:  # noqa: BLE001 - whatever a class's own pickling raises
        is_refused = not isinstance(error, BaseExceptionGroup)
    try:
        if not is_refused and _are_equal(error, _through_pickle(rebuilt := _Rebuilt(error))):
            return rebuilt
    except Exception:  # noqa: BLE001, S110 - the same
        pass
    return _lost(error)


class _Rebuilt:
    """Unpickles as the exception, made without its `__init__`."""

    def __init__(self, error: BaseException) -> None:
        arguments = error.args
        if isinstance(error, BaseExceptionGroup):
            arguments = error.message, [portable(each) for each in error.exceptions]
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
    return pickle.loads(pickle.dumps(value))  # noqa: S301 - made a moment ago


def _are_equal(error: BaseException, twin: Any) -> bool:
    if type(twin) is not type(error) or text_of(twin) != text_of(error):
        return False
    if attribute_of(twin, "__notes__") != attribute_of(error, "__notes__"):
        return False
    if isinstance(error, BaseExceptionGroup) and isinstance(twin, BaseExceptionGroup):
        return all(
            type(there) is LostError or _are_equal(here, there)
            for here, there in zip(error.exceptions, twin.exceptions, strict=True)
        )
    return len(twin.args) == len(error.args) and all(map(_are_alike, error.args, twin.args))


def _are_alike(one: Any, other: Any) -> bool:
    """Whether two arguments are equal, as far as their type can tell."""
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
