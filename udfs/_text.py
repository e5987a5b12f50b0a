"""Text of exceptions, in a form that Spark can store."""

from __future__ import annotations

from typing import Final

__all__ = ["as_text", "message_of", "type_name"]

MESSAGE_CHARACTERS: Final = 2_000
NAME_CHARACTERS: Final = 200


def message_of(exception: BaseException) -> str:
    """The exception's message, shortened. Never raises."""
    try:
        text = str(exception)
    except Exception as error:  # noqa: BLE001 - the user's code raised it
        return f"<str() of the exception raised {type_name(error)}>"
    if len(text) > MESSAGE_CHARACTERS:
        text = f"{text[:MESSAGE_CHARACTERS]}… ({len(text):,} characters)"
    return as_text(text)


def type_name(exception: BaseException) -> str:
    """The name of the exception's class, shortened."""
    return type(exception).__name__[:NAME_CHARACTERS]


def as_text(text: str) -> str:
    """The text with each lone surrogate as an escape, because UTF-8 cannot encode one."""
    return str.encode(text, "utf-8", "backslashreplace").decode()
