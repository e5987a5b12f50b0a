"""The default name: identifies a function in a file that other functions, processes and runs share."""

from __future__ import annotations

import sys
from hashlib import sha256
from inspect import isfunction
from typing import Any

from .._core.describe import describe
from .._function import innermost
from ._stable_key import stable_key

__all__ = ["default_name"]

_PLAIN = (bool, int, float, complex, str, bytes, tuple, list, dict, set, frozenset)


def default_name(function: Any) -> str:
    """The qualified name of the user's own function, below all wrappers; of an object, that of its class.

    An object whose attributes are not all empty may answer differently from others of its class, so a digest of those
    attributes follows the name of its class.

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
    if named is own:
        return name
    try:
        return name + _digest_of(own)
    except TypeError as error:
        raise TypeError(f"{problem} of its class with other attributes. {hint}") from error


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


def _digest_of(instance: Any) -> str:
    """Identifies the object's attributes that are not empty: an empty list or a counter at 0 tells nothing.

    Raises:
        TypeError: An attribute is not of a type that is the same in every process, or the class has a `__new__` of
            its own, so that its attributes do not tell what it was made of.
    """
    kind: Any = type(instance)
    if kind.__new__ is not object.__new__:
        raise TypeError(f"{kind.__qualname__} has a __new__ of its own")
    state: Any = object.__getstate__(instance)  # None; or the attributes; or a pair of them and the slots
    parts = state if isinstance(state, tuple) else (state,)
    attributes = sorted((name, value) for part in parts if part for name, value in part.items() if not _is_empty(value))
    return f"#{sha256(stable_key(tuple(attributes))).hexdigest()[:16]}" if attributes else ""


def _is_empty(value: Any) -> bool:
    return value is None or (type(value) in _PLAIN and not value)
