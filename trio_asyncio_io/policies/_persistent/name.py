"""Names and keys: they identify a function and its arguments in a file that other processes and runs share."""

from __future__ import annotations

import sys
from hashlib import sha256
from inspect import isfunction
from typing import Any

from ..._codec import encoded
from ..._core.describe import describe
from ..._function import innermost

__all__ = ["default_name", "stable_key"]

_PLAIN = (bool, int, float, complex, str, bytes, tuple, list, dict, set, frozenset)


def stable_key(value: Any) -> bytes:
    """The value as bytes that are the same in every process. Those of different types, such as 1, 1.0 and True, differ.

    Args:
        value: A hashable that the plain format can store. Not a mutable container: it could change during the call.

    Raises:
        TypeError: The value is, or contains, anything else.
    """
    try:
        hash(value)
        return encoded(value, "plain", "key")
    except TypeError as error:  # includes `NotStorableError`
        raise TypeError(
            f"{describe(value)} of type {type(value).__name__} is not a key that other processes would find again: "
            "give persistent key=, a function that returns None, bool, int, float, str, bytes, Decimal, date, "
            "datetime, timedelta, UUID or tuples of these"
        ) from error


def default_name(function: Any) -> str:
    """The qualified name of the user's own function, below all wrappers. For an object, that of its class.

    Two objects of one class may return different results if their attributes differ. So a digest of the attributes that
    are not empty follows the name of the class.

    Raises:
        TypeError: Another function could have the same name, and the caller must pass `name=`.
    """
    own = innermost(function)
    named = type(own) if hasattr(own, "invoke") and not isfunction(own) else own
    name = f"{getattr(named, '__module__', None)}.{getattr(named, '__qualname__', None)}"
    problem = f"name must be given for {describe(own)}: nothing in the file would distinguish it from others"
    hint = "Pass name=, a text that is the same in every run"
    if not (_is_defined_at_top_level(named) or _is_found_by_name(named)):
        raise TypeError(f"{problem}. {hint}")
    if named is own:
        return name
    try:
        return name + _digest(own)
    except TypeError as error:
        raise TypeError(f"{problem} of its class with other attributes. {hint}") from error


def _is_defined_at_top_level(function: Any) -> bool:
    """Whether a `def` in a module, or in a class of a module, defined the function.

    A decorated function may carry the qualified name of another one, which `functools.wraps` copied. Its code still has
    the original name, and it usually has a closure.
    """
    return (
        isfunction(function)
        and function.__closure__ is None
        and function.__code__.co_qualname == function.__qualname__
        and "<" not in function.__qualname__
    )


def _is_found_by_name(named: Any) -> bool:
    """Whether its module has this object under its qualified name, perhaps inside wrappers (the rule of `pickle`)."""
    found: Any = sys.modules.get(getattr(named, "__module__", None) or "")
    for part in str(getattr(named, "__qualname__", "")).split("."):
        found = getattr(found, part, None)
    return found is not None and innermost(found) is named


def _digest(instance: Any) -> str:
    """A digest of the object's attributes, or an empty string if all are empty.

    Raises:
        TypeError: An attribute has no stable key, or the class has a `__new__` of its own, so that the object may have
            state that is not an attribute.
    """
    kind: Any = type(instance)
    if kind.__new__ is not object.__new__:
        raise TypeError(f"{kind.__qualname__} has a __new__ of its own")
    state: Any = object.__getstate__(instance)  # None, the attributes, or a pair of the attributes and the slots
    parts = state if isinstance(state, tuple) else (state,)
    attributes = sorted((name, value) for part in parts if part for name, value in part.items() if not _is_empty(value))
    return f"#{sha256(stable_key(tuple(attributes))).hexdigest()[:16]}" if attributes else ""


def _is_empty(value: Any) -> bool:
    """Whether the attribute does not distinguish objects: None, an empty container, or a counter at 0."""
    return value is None or (type(value) in _PLAIN and not value)
