"""The checks: arguments that are out of their range, told by name and value."""

from __future__ import annotations

from typing import Any

from .._core.describe import describe

__all__ = ["checked_count", "checked_error_types", "checked_flag", "checked_predicate", "checked_seconds"]


def checked_count(name: str, value: Any) -> int:
    """The value, a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number, got {describe(value)}")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value}")
    return value


def checked_flag(name: str, value: Any) -> bool:
    """The value, True or False."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {describe(value)}")
    return value


def checked_seconds(name: str, value: Any, *, or_zero: bool = False) -> float:
    """The value, seconds above 0, or from 0 on; `math.inf` is a number of seconds, NaN is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be seconds, got {describe(value)}")
    if or_zero and not value >= 0:
        raise ValueError(f"{name} must be seconds, at least 0, got {value}")
    if not or_zero and not value > 0:
        raise ValueError(f"{name} must be seconds above 0, got {value}")
    return float(value)


def checked_predicate(name: str, value: Any) -> Any:
    """The value, which can be called."""
    if not callable(value):
        raise TypeError(f"{name} must be callable, got {describe(value)}")
    return value


def checked_error_types(name: str, value: Any) -> tuple[type[Exception], ...]:
    """The value, an exception type or a tuple of them, as a tuple."""
    types = value if isinstance(value, tuple) else (value,)
    for each in types:
        if not (isinstance(each, type) and issubclass(each, Exception)):
            raise TypeError(f"{name} must be an exception type or a tuple of them, got {describe(value)}")
    return types
