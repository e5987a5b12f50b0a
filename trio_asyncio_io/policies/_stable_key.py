"""The stable key: arguments as bytes that are the same in every process and every run."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from .._core.describe import describe

__all__ = ["stable_key"]


def stable_key(value: Any) -> bytes:
    """The value as bytes; values that differ in type, as 1, 1.0, True and "1" do, give different ones.

    Args:
        value: None, a bool, int, float, str, bytes, Decimal, date, datetime, timedelta or UUID, or a tuple of
            such. No subclasses: what those add would be lost.

    Raises:
        TypeError: It is, or contains, anything else.
    """
    encode = _TEXT_OF.get(type(value))
    if encode is None:
        raise TypeError(
            f"{describe(value)} of type {type(value).__name__} is no key that other processes would find again: "
            "give persistent key=, which makes one of None, bool, int, float, str, bytes, Decimal, date, datetime, "
            "timedelta, UUID and tuples of them"
        )
    content = encode(value)
    return b"%s%d:%s" % (type(value).__name__.encode(), len(content), content)


def _text(value: str) -> bytes:
    return value.encode("utf-8", "surrogatepass")


_TEXT_OF: Final[dict[type, Callable[[Any], bytes]]] = {
    type(None): lambda _: b"",
    bool: lambda value: b"1" if value else b"0",
    int: lambda value: b"%x" % value,
    float: lambda value: value.hex().encode(),
    str: _text,
    bytes: bytes,
    Decimal: lambda value: str(value).encode(),
    date: lambda value: value.isoformat().encode(),
    datetime: lambda value: f"{value.isoformat()} {value.fold}".encode(),
    timedelta: lambda value: f"{value.days} {value.seconds} {value.microseconds}".encode(),
    UUID: lambda value: bytes(value.bytes),
    tuple: lambda value: b"".join(map(stable_key, value)),
}
