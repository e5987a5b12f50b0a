"""How the files of this project store values: as plain text.

The format is JSON. JSON's own types are stored as themselves, and every other type as an object with one tag:
`(1, b"x")` is `{"$tuple": [1, {"$bytes": "eA=="}]}`. Reading it creates values of the types below and runs no other
code. What is read has the type and value that was stored, with one exception: the error of a dead letter becomes a
`LostError`, which has the type name, message, notes and causes of the original as text.
"""

from __future__ import annotations

import json
import math
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Iterator
from dataclasses import fields
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from pickle import PicklingError
from typing import Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

from .._core.dead_letter import DeadLetter, lost_error, texts_of
from .._core.elements import StreamRecord, Watermark
from .._core.snapshot import Snapshot, SnapshotElement
from .._values.describe import describe

_SMALL: Final = 2**63  # Python limits the decimal digits that it converts, but not the hexadecimal ones


class NotStorableError(TypeError):
    """A value cannot be stored. The message names its place and type, and the remedy."""


class UnreadableError(ValueError):
    """Stored bytes cannot be read in this process. The message has the reason."""


_REFUSALS: Final = (TypeError, ValueError, RecursionError)


def encoded(value: object, name: str) -> bytes:
    """The value as bytes.

    Args:
        value: Any value.
        name: The error calls the value by this name.

    Raises:
        NotStorableError: The value, or a part of it, cannot be stored.
    """
    try:
        return _encoded(value)
    except _REFUSALS as error:
        place, part, reason = _first_refused(value, name, error)
        raise NotStorableError(
            f"{place} is {describe(part)}, which cannot be stored: {reason}; "
            "convert it to plain values, for example with dataclasses.asdict"
        ) from reason


def decoded(payload: bytes) -> Any:
    """The value that was encoded.

    Raises:
        UnreadableError: These bytes cannot be read.
    """
    try:
        return _parse(payload.decode("utf-8", "surrogatepass"))
    except Exception as error:
        raise UnreadableError(f"{type(error).__name__}: {error}") from error


def _encoded(value: object) -> bytes:
    # Surrogates are stored as themselves, because JSON's escapes would join two of them to one character
    return _text(_tree(value)).encode("utf-8", "surrogatepass")


_text = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")).encode


# Values as trees of JSON's own types


def _tree(value: Any) -> Any:
    """The value as JSON's types.

    Raises:
        TypeError: The format has no form for its type. A subclass is another type.
        RecursionError: It is nested too deeply. Writing recurs deeper than reading, so what can be written can be read.
    """
    kind = type(value)
    if kind in _AS_THEMSELVES:
        return value
    write = _WRITERS.get(kind)
    if write is None:
        raise TypeError(f"files have no form for the type {kind.__qualname__}")
    return write(value)


def _int(value: int) -> Any:
    return value if -_SMALL <= value < _SMALL else {"$int": hex(value)}


def _float(value: float) -> Any:
    return value if math.isfinite(value) else {"$float": repr(value)}


def _list(value: Any) -> list[Any]:
    return [item if type(item) in _AS_THEMSELVES else _tree(item) for item in value]


def _dict(value: dict[Any, Any]) -> dict[str, Any]:
    found = {}
    for key, item in value.items():
        if type(key) is not str or key[:1] == "$":
            return {"$dict": [_list(pair) for pair in value.items()]}
        found[key] = item if type(item) in _AS_THEMSELVES else _tree(item)
    return found


def _sorted(value: Any) -> list[Any]:
    """The items of a set in an order that does not depend on the process, because keys must not."""
    return sorted(_list(value), key=_text)


def _tagged(tag: str, content: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: {tag: content(value)}


def _datetime(value: datetime | time) -> list[Any]:
    return [value.replace(tzinfo=None).isoformat(), value.fold, _tree(value.tzinfo)]


def _read_datetime(kind: Any, text: str, fold: int, zone: tzinfo | None) -> Any:
    return kind.fromisoformat(text).replace(fold=fold, tzinfo=zone)


def _zone(value: ZoneInfo) -> str:
    try:
        value.__reduce__()
    except PicklingError:  # so its key, if it has one, does not determine its rules
        raise TypeError("it was read with ZoneInfo.from_file") from None
    return value.key


def _timezone(value: timezone) -> list[Any]:
    offset, name = value.utcoffset(None), value.tzname(None)
    return _list([offset] if name == timezone(offset).tzname(None) else [offset, name])


def _dead_letter(value: DeadLetter) -> list[Any]:
    return [_tree(value.element), texts_of(value.error), value.attempts, _tree(value.seconds)]


def _read_dead_letter(element: Any, texts: Any, attempts: int, seconds: float) -> DeadLetter:
    return DeadLetter(element, lost_error(texts), attempts, seconds)


def _fields_of(kind: type) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    names = [field.name for field in fields(kind)]
    return lambda value: _list([getattr(value, name) for name in names]), lambda parts: kind(*parts)


_AS_THEMSELVES: Final = frozenset({str, bool, type(None)})

_RECORDS: Final = (StreamRecord, Watermark, SnapshotElement, Snapshot)

# By type: the content behind its tag, and the value of a content
_TAGGED: Final[dict[type, tuple[Callable[[Any], Any], Callable[[Any], Any]]]] = {
    tuple: (_list, tuple),
    set: (_sorted, set),
    frozenset: (_sorted, frozenset),
    bytes: (
        lambda value: b2a_base64(value, newline=False).decode(),
        lambda text: a2b_base64(text, strict_mode=True),
    ),
    Decimal: (str, Decimal),
    UUID: (lambda value: value.hex, UUID),
    date: (date.isoformat, date.fromisoformat),
    time: (_datetime, lambda parts: _read_datetime(time, *parts)),
    datetime: (_datetime, lambda parts: _read_datetime(datetime, *parts)),
    timedelta: (
        lambda value: [value.days, value.seconds, value.microseconds],
        lambda parts: timedelta(*parts),
    ),
    timezone: (_timezone, lambda parts: timezone(*parts)),
    ZoneInfo: (_zone, ZoneInfo),
    **{kind: _fields_of(kind) for kind in _RECORDS},
    DeadLetter: (_dead_letter, lambda parts: _read_dead_letter(*parts)),
}

_WRITERS: Final[dict[type, Callable[[Any], Any]]] = {
    int: _int,
    float: _float,
    list: _list,
    dict: _dict,
    **{kind: _tagged(f"${kind.__name__}", content) for kind, (content, _) in _TAGGED.items()},
}

_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "$int": lambda text: int(text, 16),
    "$float": float,
    "$dict": dict,
    **{f"${kind.__name__}": read for kind, (_, read) in _TAGGED.items()},
}


def _value(found: dict[str, Any]) -> Any:
    """The value that was stored as a JSON object. The values inside it have been read already."""
    if len(found) == 1:
        ((tag, content),) = found.items()
        if tag[:1] == "$":
            return _READERS[tag](content)
    return found


_parse = json.JSONDecoder(object_hook=_value).decode


# Errors


def _first_refused(value: Any, place: str, error: Exception) -> tuple[str, Any, Exception]:
    """The innermost part that cannot be encoded on its own: its place, the part, and the error."""
    if isinstance(error, RecursionError):
        return place, value, ValueError("it contains itself, or is nested too deeply")
    for name, part in _parts(value):
        try:
            _encoded(part)
        except _REFUSALS as refused:
            return _first_refused(part, place + name, refused)
    return place, value, error


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """The parts of a value, each with its place in the value."""
    kind = type(value)
    if kind in (list, tuple):
        yield from ((f"[{number}]", item) for number, item in enumerate(value))
    elif kind is dict:
        yield from ((f"[{describe(key)}]", item) for key, item in value.items())
        yield from ((" (a key)", key) for key in value)
    elif kind in (*_RECORDS, DeadLetter):
        yield from ((f".{field.name}", getattr(value, field.name)) for field in fields(kind))
