"""Stable keys: arguments as bytes that are the same in every process and every run."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from ..._core.describe import describe

__all__ = ["stable_key"]


def stable_key(value: Any) -> bytes:
    """The value as bytes. Values of different types, such as 1, 1.0, True and "1", differ.

    Args:
        value: None, a bool, int, float, str, bytes, Decimal, date, datetime, timedelta or UUID, or a tuple of these.
            Not an instance of a subclass, whose own attributes would be lost.

    Raises:
        TypeError: The value is, or contains, anything else.
    """
    encode = _ENCODERS.get(type(value))
    if encode is None:
        raise TypeError(
            f"{describe(value)} of type {type(value).__name__} is not a key that other processes would find again: "
            "give persistent key=, a function that returns None, bool, int, float, str, bytes, Decimal, date, "
            "datetime, timedelta, UUID or tuples of these"
        )
    content = encode(value)
    return b"%s%d:%s" % (type(value).__name__.encode(), len(content), content)


_ENCODERS: Final[dict[type, Callable[[Any], bytes]]] = {
    type(None): lambda _: b"",
    bool: lambda value: b"1" if value else b"0",
    int: lambda value: b"%x" % value,
    float: lambda value: value.hex().encode(),
    str: lambda value: value.encode("utf-8", "surrogatepass"),
    bytes: bytes,
    Decimal: lambda value: str(value).encode(),
    date: lambda value: value.isoformat().encode(),
    datetime: lambda value: f"{value.isoformat()} {value.fold}".encode(),
    timedelta: lambda value: f"{value.days} {value.seconds} {value.microseconds}".encode(),
    UUID: lambda value: bytes(value.bytes),
    tuple: lambda value: b"".join(map(stable_key, value)),
}
