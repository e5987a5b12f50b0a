"""The default name: identifies a function in a file that other functions, processes and runs share."""

from __future__ import annotations

import sys
from inspect import isfunction
from typing import Any

from .._elements import describe
from .._function import innermost

__all__ = ["default_name"]

_PLAIN = (bool, int, float, complex, str, bytes, tuple, list, dict, set, frozenset)


def default_name(function: Any) -> str:
    """The qualified name of the user's own function, or of its class, below all wrappers.

    Raises:
        TypeError: Another function could have the same name; the message says to pass `name=`.
    """
    own = innermost(function)
    named = type(own) if hasattr(own, "invoke") and not isfunction(own) else own
    name = f"{getattr(named, '__module__', None)}.{getattr(named, '__qualname__', None)}"
    problem = f"name must be given for {describe(own)}: nothing in the file would tell it from others"
    hint = "Pass name=, a text that is the same in every run"
    if not (_is_defined_at_top_level(named) or _is_found_by_name(named)):
        raise TypeError(f"{problem}. {hint}")
    if named is not own and _is_configured(own):
        raise TypeError(f"{problem} of its class with other attributes. {hint}; earlier releases used name={name!r}")
    return name


def _is_defined_at_top_level(function: Any) -> bool:
    """Whether the function was made once, by a `def` of its module or of a class there.

    `functools.wraps` copies the qualified name, but not that of the code, and a decorator's function is a closure.
    """
    return (
        isfunction(function)
        and function.__closure__ is None
        and function.__code__.co_qualname == function.__qualname__
        and "<" not in function.__qualname__
    )


def _is_found_by_name(named: Any) -> bool:
    """Whether the module has this very object under its qualified name, perhaps below wrappers (as `pickle` asks)."""
    found: Any = sys.modules.get(getattr(named, "__module__", None) or "")
    for part in str(getattr(named, "__qualname__", "")).split("."):
        found = getattr(found, part, None)
    return found is not None and innermost(found) is named


def _is_configured(instance: Any) -> bool:
    """Whether the object has an attribute that is not empty, or was made by a `__new__` of its class.

    Such an object may answer differently from others of its class. An empty list or a counter at 0 says nothing.
    """
    state: Any = object.__getstate__(instance)  # None; or the attributes; or a pair of them and the slots
    parts = state if isinstance(state, tuple) else (state,)
    values = [value for part in parts if part for value in part.values()]
    kind: Any = type(instance)
    return kind.__new__ is not object.__new__ or not all(map(_is_empty, values))


def _is_empty(value: Any) -> bool:
    return value is None or (type(value) in _PLAIN and not value)
