"""Keys: the input values of a call as 16 bytes, the same in every process, release and time zone."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from hashlib import blake2b
from typing import Any, Final

KEY_BYTES: Final = 16

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_WALL_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - for wall clock times
_MICROSECOND: Final = timedelta(microseconds=1)


def idempotency_key(*values: Any, version: str = "1") -> str:
    """A key for a call with these values: the same in each attempt, task, run, process and machine.

    For services that recognize a repeated request by a key, such as an `Idempotency-Key` header. With the input values
    of a row, in their order, it is the row's `key` in a memo, in hexadecimal.

    Equal values of one type have the same key, even in two rows: pass a value that identifies what the call does, such
    as the number of a payment. 1, 1.0 and "1" have different keys, and so have decimals with different numbers of
    digits after the point.

    Args:
        values: Strings, bytes, numbers, booleans, `Decimal`, dates, times, intervals, None, and lists, tuples and dicts
            of these. A dict counts as a struct: by its values in their order, without their names.
        version: A call with another version is another call. "1" by default.

    Returns:
        32 hexadecimal digits.

    Raises:
        TypeError: A value has another type.

    Example:
        async def invoke(self, number, amount):
            headers = {"Idempotency-Key": idempotency_key("payment", number)}
            await self.http.post("/payments", json={"amount": amount}, headers=headers)
    """
    return key_of(version, values).hex()


def key_of(version: str, values: Iterable[Any]) -> bytes:
    """The key of these input values. Equal values in SQL have equal keys: NaN equals NaN, and -0.0 equals 0.0.

    Args:
        version: The version of the answers. Each has keys of its own.
        values: As Arrow converts them to Python. An instant has the same key in each time zone.
    """
    encoded = bytearray()
    _encode(version, encoded)
    for value in values:
        _encode(value, encoded)
    return blake2b(encoded, digest_size=KEY_BYTES).digest()


def _encode(value: Any, encoded: bytearray) -> None:
    """Append a type tag, the length and the content. So different values never have the same encoding."""
    if isinstance(value, dict):
        _encode_all(b"{", value.values(), encoded)
    elif isinstance(value, list | tuple):
        _encode_all(b"[", value, encoded)
    else:
        encode = _SCALARS.get(type(value))
        if encode is None:
            raise TypeError(f"a key cannot have a value of type {type(value).__name__}: make it a string")
        tag, content = encode(value)
        encoded += tag + b"%d:" % len(content) + content


def _encode_all(tag: bytes, values: Any, encoded: bytearray) -> None:
    encoded += tag + b"%d:" % len(values)
    for value in values:
        _encode(value, encoded)


def _datetime(value: datetime) -> tuple[bytes, bytes]:
    if value.tzinfo is None:
        return b"w", b"%d" % ((value - _WALL_EPOCH) // _MICROSECOND)
    return b"z", b"%d" % ((value - _EPOCH) // _MICROSECOND)


_SCALARS: Final[dict[type, Any]] = {
    type(None): lambda _: (b"n", b""),
    bool: lambda value: (b"t" if value else b"f", b""),
    int: lambda value: (b"i", b"%d" % value),
    float: lambda value: (b"d", b"nan" if value != value else struct.pack(">d", value + 0.0)),  # noqa: PLR0124 - NaN
    Decimal: lambda value: (b"c", format(value, "f").encode()),
    str: lambda value: (b"s", value.encode("utf-8", "surrogatepass")),
    bytes: lambda value: (b"b", value),
    date: lambda value: (b"D", value.isoformat().encode()),
    datetime: _datetime,
    time: lambda value: (b"T", value.isoformat().encode()),
    timedelta: lambda value: (b"I", b"%d" % (value // _MICROSECOND)),
}
