"""The fresh exception: one exception told to several tasks, without each adding to what the others see.

Whoever raises an exception adds to its traceback, and the operator adds a note for each element.
"""

from __future__ import annotations

from copy import copy
from itertools import chain
from typing import TypeVar

__all__ = ["fresh"]

E = TypeVar("E", bound=BaseException)


def fresh(error: E) -> E:
    """A copy of the exception: its type, arguments, attributes, cause, context, notes and traceback.

    What cannot be copied faithfully is returned itself.
    """
    twin = _by_its_own_means(error) or _without_its_init(error)
    if twin is None:
        return error
    if hasattr(twin, "__notes__"):
        twin.__notes__ = list(twin.__notes__)
    twin.__cause__, twin.__context__ = error.__cause__, error.__context__
    twin.__suppress_context__ = error.__suppress_context__
    return twin.with_traceback(error.__traceback__)


def _by_its_own_means(error: E) -> E | None:
    try:
        twin = copy(error)
    except Exception:  # noqa: BLE001 - its own `__init__`, which wants other arguments
        return None
    return twin if _is_faithful(error, twin) else None


def _without_its_init(error: E) -> E | None:
    """A copy for the many classes whose `__init__` takes something else than `args`."""
    try:
        twin = type(error).__new__(type(error), *error.args)
        twin.__dict__.update(error.__dict__)
    except Exception:  # noqa: BLE001 - whatever it is, there is no copy
        return None
    return twin if _is_faithful(error, twin) else None


def _is_faithful(error: BaseException, twin: BaseException) -> bool:
    if twin is error or type(twin) is not type(error) or any(_slots(type(error))):
        return False
    if len(twin.args) != len(error.args) or any(a is not b for a, b in zip(twin.args, error.args, strict=True)):
        return False
    try:
        return twin.__dict__.keys() == error.__dict__.keys() and str(twin) == str(error)
    except Exception:  # noqa: BLE001 - a `__str__` that raises tells us nothing
        return False


def _slots(kind: type) -> chain[str]:
    """Attributes that neither way of copying sees."""
    return chain.from_iterable(vars(each).get("__slots__", ()) for each in kind.__mro__)
