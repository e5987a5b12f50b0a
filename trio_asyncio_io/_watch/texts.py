"""What a page shows of the user's objects: options, records and exceptions, without values that may be secret."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import MISSING, fields, is_dataclass
from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID

from .._core.describe import describe, duration, printable
from .._core.notes import text_of
from .._core.options import Options
from .._core.snapshot import Snapshot
from .._errors import AttemptTimeoutError

__all__ = ["message_of", "options_of", "type_of"]

MAX_MESSAGE = 200

# Before a message is searched for values. It may be as long as a response
MAX_SEARCHED = 2_000

# Shorter texts occur in messages by chance
MIN_HIDDEN = 3
MAX_HIDDEN = 100
MAX_DEPTH = 3

# The path and the query of a URL, and the user before its host, may be secret. The pattern starts only at the start of
# a word, so it takes linear time
URL = re.compile(r"(?<![\w+.-])([a-zA-Z][\w+.-]*://)(?:[^\s/?#'\"<>]*@)?([^\s/?#'\"<>]*)([^\s'\"<>]*)")

# Options that are not worth a line when they have this value
DEFAULTS = {"retry": None, "on_timeout": None, "flatten": False, "restore": None, "key": None}


def options_of(options: Options) -> dict[str, str]:
    """Names and values of the options of an operator."""
    found = {each.name: getattr(options, each.name) for each in fields(options) if each.name != "observer"}
    found = {name: value for name, value in found.items() if name not in DEFAULTS or value != DEFAULTS[name]}
    return {name: duration(value) if name == "timeout" else _shown(value) for name, value in found.items()}


def message_of(error: Exception, value: object, *, values: bool) -> str:
    """The message of an exception, on one line.

    Args:
        error: The exception.
        value: The value of the record.
        values: Whether to show what may be secret: paths and queries of URLs, and texts and numbers of the value.
    """
    if isinstance(error, AttemptTimeoutError):  # its message quotes the element
        return f"no result within its attempt_timeout of {error.timeout:g} s"
    text = text_of(error)[:MAX_SEARCHED]
    if not values:
        text = _without_texts(URL.sub(_origin_of, text), value)
    text = printable(" ".join(text.split()))
    return text if len(text) <= MAX_MESSAGE else f"{text[: MAX_MESSAGE - 1]}…"


def type_of(error: BaseException) -> str:
    """The name of the exception's class."""
    return printable(type(error).__name__)


def _shown(value: Any) -> str:
    """An option. A snapshot's elements are not shown, because they may be secret."""
    if isinstance(value, Snapshot):
        return f"a snapshot of {len(value):,} elements"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if is_dataclass(value) and not isinstance(value, type):
        given = [
            f"{each.name}={_shown(getattr(value, each.name))}"
            for each in fields(value)
            if each.repr and (each.default is MISSING or getattr(value, each.name) != each.default)
        ]
        return f"{type(value).__name__}({', '.join(given)})"
    return printable(getattr(value, "__qualname__", "") or describe(value).strip("'"))


def _origin_of(url: re.Match[str]) -> str:
    scheme, host, rest = url.groups()
    return f"{scheme}{host}{'/…' if rest.strip('/') else rest}"


def _without_texts(text: str, value: object) -> str:
    """The text, in which everything that the value contains is replaced by an ellipsis."""
    found = {each for _, each in zip(range(MAX_HIDDEN), _texts(value), strict=False) if len(each) >= MIN_HIDDEN}
    for each in sorted(found, key=len, reverse=True):
        text = text.replace(each, "…")
    return text


def _texts(value: Any, depth: int = 0) -> Iterator[str]:
    """The texts and numbers in a value, as a message may quote them."""
    if isinstance(value, str | bytes):
        yield value if isinstance(value, str) else value.decode("latin-1")
        yield repr(value)[1:-1].removeprefix("'")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield describe(value)
    elif isinstance(value, date | Decimal | UUID):
        yield str(value)
    elif depth < MAX_DEPTH:
        for item in _items(value):
            yield from _texts(item, depth + 1)


def _items(value: Any) -> Any:
    if isinstance(value, Mapping):
        return value.values()
    if is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, each.name, None) for each in fields(value)]
    return value if isinstance(value, list | tuple | AbstractSet) else ()
