"""Argument checks. An error names the parameter, its legal range and the value."""

from __future__ import annotations

import math
import operator
import os
import sys
from collections.abc import Callable
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any, SupportsIndex

from .describe import describe


def check_int(
    name: str,
    value: object,
    *,
    at_least: int,
    limit_name: str = "",
    at_most: int | None = None,
    noun: str = "a whole number",
) -> int:
    """Return a whole number in these limits.

    Args:
        name: The parameter.
        value: Its value. A bool is not a number.
        at_least: The lower limit.
        limit_name: The name of the lower limit in the error, if it has one.
        at_most: The upper limit. None: there is none.
        noun: Describes the value, in the error for one of another type.

    Raises:
        TypeError, ValueError: It is not a whole number, or not in these limits. The message names the parameter.
    """
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise TypeError(f"{name} must be {noun}, got {describe(value)}")
    number = operator.index(value)
    if number < at_least:
        limit = f"{limit_name}, {at_least}" if limit_name else at_least
        raise ValueError(f"{name} must be at least {limit}, got {number}")
    if at_most is not None and number > at_most:
        raise ValueError(f"{name} must be at most {at_most:,}, got {describe(number)}")
    return number


def check_number(
    name: str,
    value: object,
    legal: str,
    is_legal: Callable[[float], bool],
    *,
    noun: str = "a number",
    of: object = None,
) -> float:
    """Return a legal number as a float.

    Args:
        name: The parameter.
        value: Its value. A bool is not a number.
        legal: Describes the legal numbers, in the error.
        is_legal: number -> whether it is legal.
        noun: Describes the value, in the error for one of another type.
        of: The object whose code has returned the value, for the error. None: there is none.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{_source(name, of)} must be {noun}, got {describe(value)}")
    number = _as_float(value)
    if not is_legal(number):
        raise ValueError(f"{_source(name, of)} must be {legal}, got {describe(value)}")
    return number


def _source(name: str, of: object) -> str:
    return name if of is None else f"{name} of {describe(of)}"


def _as_float(value: float) -> float:
    """The number as a float; infinite if it is a whole number that is too large for one."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def check_bool(name: str, value: object) -> bool:
    """Return True or False. A text such as "no" would count as True.

    Args:
        name: The parameter.
        value: Its value.

    Raises:
        TypeError: It is neither. The message names the parameter.
    """
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {describe(value)}")
    return value


def check_seconds(
    name: str, value: object, *, positive: bool = False, finite: bool = False, hint: str = "", of: object = None
) -> float:
    """Return seconds, not negative, as a float. `hint` is added to the description of the legal values."""
    if type(value) is float and 0 < value < math.inf:  # legal everywhere: checked for each retry
        return value

    def is_legal(seconds: float) -> bool:
        return (seconds > 0 if positive else seconds >= 0) and not (finite and seconds == math.inf)

    legal = "seconds, not negative and not NaN"
    if positive:
        legal = "seconds above 0 and finite" if finite else "seconds above 0"
    elif finite:
        legal = "finite seconds and not negative"
    return check_number(name, value, legal + hint, is_legal, noun=f"seconds as a number such as 5.0{hint}", of=of)


def check_weight(name: str, value: Any, *, of: object = None) -> float:
    """Return what a call weighs, a finite number that is not negative, as a float."""
    if type(value) in {int, float} and 0 <= value <= sys.float_info.max:  # legal: checked for each call
        return float(value)
    legal = "finite and not negative"
    return check_number(name, value, legal, lambda number: 0 <= number < math.inf, noun="an int or a float", of=of)


def check_callable(name: str, value: Any) -> Any:
    """Return a callable."""
    if not callable(value):
        raise TypeError(f"{name} must be callable, got {describe(value)}")
    return value


def check_callback(name: str, value: Any) -> Any:
    """Return a callable that is not async. Nothing awaits its result, and a coroutine is true and hashable."""
    check_callable(name, value)
    if iscoroutinefunction(value) or iscoroutinefunction(type(value).__call__):
        raise TypeError(f"{name} must not be async, got {describe(value)}: write it with def, and do not await in it")
    return value


def check_exception_types(name: str, value: Any) -> tuple[type[Exception], ...]:
    """Return an exception type, or a tuple of them, as a tuple."""
    types = value if isinstance(value, tuple) else (value,)
    for kind in types:
        if not (isinstance(kind, type) and issubclass(kind, Exception)):
            raise TypeError(f"{name} must be a subclass of Exception or a tuple of them, got {describe(value)}")
    return types


def check_path(name: str, value: Any) -> str:
    """Return the path of a file on disk as a string. A `~` at its beginning becomes the home directory."""
    path = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(path, str):
        raise TypeError(f"{name} must be a file's path, got {describe(value)}")
    if path in {"", ":memory:"}:
        raise ValueError(f"{name} must be a file's path, got {path!r}")
    return str(Path(path).expanduser())


def check_name(name: str, value: object) -> str:
    """Return a string that is not empty and has a UTF-8 encoding."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, got {describe(value)}")
    if not value:
        raise ValueError(f"{name} must not be empty, got ''")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{name} must be text that UTF-8 can encode, got {value!r}") from error
    return value


def check_optional_name(name: str, value: object) -> str | None:
    """Return a name as `check_name` does, or None."""
    return None if value is None else check_name(name, value)
