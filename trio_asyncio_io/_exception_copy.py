"""Copies of an exception, for tasks that share one.

Each `raise` extends the traceback of an exception, and the operator adds a note for each element. With copies, one task
does not see the traceback and the notes of another.
"""

from __future__ import annotations

from copy import copy
from typing import TypeVar

__all__ = ["copied"]

E = TypeVar("E", bound=BaseException)


def copied(error: E) -> E:
    """A copy of the exception: type, arguments, attributes, cause, context, notes and traceback.

    If no faithful copy can be made, returns the exception itself.
    """
    twin = _copy(error) or _copy_without_init(error)
    if twin is None:
        return error
    if hasattr(twin, "__notes__"):
        twin.__notes__ = list(twin.__notes__)
    twin.__cause__, twin.__context__ = error.__cause__, error.__context__
    twin.__suppress_context__ = error.__suppress_context__
    return twin.with_traceback(error.__traceback__)


def _copy(error: E) -> E | None:
    try:
        twin = copy(error)
    except Exception:  # noqa: BLE001 - an `__init__` that takes other arguments than `args`
        return None
    return twin if _is_faithful(error, twin) else None


def _copy_without_init(error: E) -> E | None:
    """A copy of an exception whose `__init__` takes other arguments than `args`, as in many libraries."""
    try:
        twin = type(error).__new__(type(error), *error.args)
        twin.__dict__.update(error.__dict__)
    except Exception:  # noqa: BLE001 - a `__new__` of its own, which may raise anything
        return None
    return twin if _is_faithful(error, twin) else None


def _is_faithful(error: BaseException, twin: BaseException) -> bool:
    if twin is error or type(twin) is not type(error) or _has_slots(type(error)):
        return False
    if len(twin.args) != len(error.args) or any(a is not b for a, b in zip(twin.args, error.args, strict=True)):
        return False
    try:
        return twin.__dict__.keys() == error.__dict__.keys() and str(twin) == str(error)
    except Exception:  # noqa: BLE001 - a `__str__` that raises
        return False


def _has_slots(kind: type) -> bool:
    """Whether instances have attributes outside of their `__dict__`, which neither way of copying copies."""
    return any(base.__dict__.get("__slots__") for base in kind.__mro__)
