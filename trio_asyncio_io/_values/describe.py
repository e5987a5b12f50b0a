"""Values and numbers for people: a shortened repr for error messages, and numbers with three digits and units."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from functools import partial
from math import floor, inf, log10
from types import MethodType
from typing import Any

_BRACKETS: dict[type, tuple[str, str]] = {list: ("[", "]"), tuple: ("(", ")"), set: ("{", "}"), dict: ("{", "}")}


def describe(value: object, limit: int = 80) -> str:
    """A value's repr on one line, at most `limit` characters long. Never raises.

    Long strings, bytes, containers, dataclasses and named tuples are shortened before their repr is computed, because
    the repr of a value of several megabytes would block the event loop.

    Args:
        value: Any object.
        limit: The maximum number of characters, 80 by default.
    """
    try:
        text = _start_of_repr(value, limit)
    except Exception as error:  # noqa: BLE001 - a broken repr must not hide the reported error
        text = f"<{type(value).__name__} whose repr raised {type(error).__name__}>"
    text = " ".join(text.split())[: limit + 1]
    text = text.encode("utf-8", "backslashreplace").decode()  # a repr may contain lone surrogates
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def printable(text: str) -> str:
    """The text with escapes for control characters, marks that change the direction of writing, and lone surrogates."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def _start_of_repr(value: Any, limit: int) -> str:
    """The repr if it has at most `limit` characters; otherwise a prefix with more than that."""
    kind = type(value)
    if kind in {str, bytes, bytearray}:
        return repr(value[: limit + 1])
    if limit <= 0:
        return "…"
    if kind in _BRACKETS and value:
        opening, closing = _BRACKETS[kind] if kind is not tuple or len(value) > 1 else ("(", ",)")
        return opening + _joined(_items(value, limit - 1), limit) + closing
    if kind is partial:  # without its arguments, which may be secrets
        return f"partial({_start_of_repr(value.func, limit - 1)})"
    if kind is MethodType:
        return f"<bound method {value.__qualname__}>"
    return _start_of_fields(value, limit)


def _start_of_fields(value: Any, limit: int) -> str:
    """The fields of a dataclass or named tuple; otherwise its repr. The fields of a function may be secrets: none."""
    kind, names = type(value), _field_names(value)
    if names is None:
        return repr(value)
    if callable(value) or hasattr(kind, "invoke"):
        return f"{kind.__qualname__}(…)"
    parts = (f"{name}={_start_of_repr(getattr(value, name), limit - 1)}" for name in names)
    return f"{kind.__qualname__}({_joined(parts, limit)})"


def _items(value: Any, limit: int) -> Iterator[str]:
    if isinstance(value, dict):
        return (f"{_start_of_repr(key, limit)}: {_start_of_repr(item, limit)}" for key, item in value.items())
    return (_start_of_repr(item, limit) for item in value)


def _field_names(value: Any) -> Iterable[str] | None:
    """The fields in the generated repr of a dataclass or named tuple; None for other values."""
    kind = type(value)
    if is_dataclass(kind):
        return [field.name for field in fields(kind) if field.repr] if hasattr(kind.__repr__, "__wrapped__") else None
    names = getattr(kind, "_fields", None)
    return names if isinstance(value, tuple) and isinstance(names, tuple) else None


def _joined(parts: Iterator[str], limit: int) -> str:
    """The parts, joined with commas until the text is longer than `limit`."""
    text = next(parts, "")
    for part in parts:
        if len(text) > limit:
            break
        text += f", {part}"
    return text


UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
THREE_DIGITS = 100
ROUNDED_UP = 0.9995  # from here on, three digits round to the next power of ten


def amount(number: float) -> str:
    """A number: whole with separators, or with three digits."""
    if number >= THREE_DIGITS or number == int(number):
        return f"{number:,.0f}"
    text = f"{number:.{max(1, 2 - floor(log10(abs(number))))}f}"  # with a point, so the zeros may go
    return text.rstrip("0").rstrip(".")


def duration(seconds: float) -> str:
    """Seconds, with three digits and a unit, such as "30 µs", "129 ms" or "1.4 s".

    Args:
        seconds: Not negative; may be infinite.

    Example:
        >>> from trio_asyncio_io.integration import duration
        >>> duration(3e-05), duration(0.1294), duration(1.4), duration(1234.5)
        ('30 µs', '129 ms', '1.4 s', '1,234 s')
    """
    if seconds == inf:
        return "∞"
    if not seconds:
        return "0 s"
    scale, unit = next((each for each in UNITS if seconds >= ROUNDED_UP * each[0]), UNITS[-1])
    return f"{amount(seconds / scale)} {unit}"


WORDS = ((86_400.0, "day"), (3_600.0, "hour"), (60.0, "minute"), (1.0, "second"))


def in_words(seconds: float) -> str:
    """Seconds in the largest unit that gives at least 1, such as "16 days", "1.5 hours" or "0.2 seconds"."""
    if seconds == inf:
        return "without an end"
    scale, unit = next((each for each in WORDS if seconds >= each[0]), WORDS[-1])
    number = amount(seconds / scale) if seconds else "0"
    return f"{number} {unit}{'' if number == '1' else 's'}"


def plural(count: int, noun: str) -> str:
    """A count and a noun whose plural ends in s."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
