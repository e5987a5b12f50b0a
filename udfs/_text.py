"""The text: what an exception or a value is called in a message that Spark must be able to store."""

from __future__ import annotations

from typing import Final

__all__ = ["as_text", "message_of", "shown", "type_name"]

MESSAGE_CHARACTERS: Final = 2_000
NAME_CHARACTERS: Final = 200
VALUE_CHARACTERS: Final = 80


def message_of(exception: BaseException) -> str:
    """The exception's message, shortened; never raises."""
    try:
        text = str(exception)
    except Exception as error:  # noqa: BLE001 - the user's, whatever it is
        return f"<str() of the exception raised {type_name(error)}>"
    if len(text) > MESSAGE_CHARACTERS:
        text = f"{text[:MESSAGE_CHARACTERS]}… ({len(text):,} characters)"
    return as_text(text)


def type_name(exception: BaseException) -> str:
    """The name of the exception's class, shortened; Python allows no lone surrogates in it."""
    return type(exception).__name__[:NAME_CHARACTERS]


def shown(value: object, limit: int = VALUE_CHARACTERS) -> str:
    """A value's repr for an error message, shortened; a broken one must not hide the error that is reported."""
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001 - the user's, whatever it is
        text = f"<whose repr raised {type_name(error)}>"
    return as_text(text if len(text) <= limit else f"{text[:limit]}…")


def as_text(text: str) -> str:
    """The text as UTF-8 can encode it, each lone surrogate as an escape."""
    return str.encode(text, "utf-8", "backslashreplace").decode()
