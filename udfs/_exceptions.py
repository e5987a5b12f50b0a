"""Exceptions of the user's code: their frames, their text, and the traceback that Spark shows."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from traceback import format_exception
from types import FrameType
from typing import Any, Final

__all__ = ["as_text", "is_user_frame", "message_of", "starting_in_user_code", "traceback_as_note", "type_name"]

# Modules of these packages are not the user's.
INFRASTRUCTURE: Final = {
    "outcome",
    "pyspark",
    "trio",
    "trio_asyncio",
    "trio_asyncio_io",
    "udfs",
} | sys.stdlib_module_names

MESSAGE_CHARACTERS: Final = 2_000
NAME_CHARACTERS: Final = 200


def is_user_frame(frame: FrameType) -> bool:
    """Whether a module outside this project, its libraries and the standard library defines the frame's code."""
    return str(frame.f_globals.get("__name__")).partition(".")[0] not in INFRASTRUCTURE


def starting_in_user_code(error: BaseException) -> BaseException:
    """The exception with its traceback cut to start at the first user frame; the whole traceback if it has none."""
    traceback = error.__traceback__
    while traceback is not None and not is_user_frame(traceback.tb_frame):
        traceback = traceback.tb_next
    return error if traceback is None else error.with_traceback(traceback)


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


@contextmanager
def traceback_as_note() -> Iterator[None]:
    """Moves the traceback into a note, so that Spark prints the exception's type and message first.

    Without this, Spark sends the formatted traceback. Its last lines matter most, and in the error of a streaming
    query they are in the middle of a page. The note starts at the first frame of the user's code and includes the
    exception's cause, which Spark omits. If the user has configured the form of Spark's tracebacks, the exception
    leaves the block unchanged.

    Runs where: in Spark's thread of a Python worker, around the whole task. Spark ends the process after an exception,
    so the environment variable that is set here affects no other task.
    """
    try:
        yield
    except GeneratorExit:  # Spark needs no more rows
        raise
    except BaseException as error:
        if _has_default_form():
            error.add_note(as_text("\n" + "".join(format_exception(starting_in_user_code(error))).rstrip()))
            os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        text = "".join(format_exception(error))
        if as_text(text) != text:
            raise _encodable(error) from None
        raise


def _has_default_form() -> bool:
    simplified = bool(os.environ.get("SPARK_SIMPLIFIED_TRACEBACK"))
    configured = any(os.environ.get(name) for name in ("SPARK_HIDE_TRACEBACK", "SPARK_TRACEBACK_WITH_LOCALS"))
    return simplified and not configured


def _encodable(error: BaseException) -> BaseException:
    """An exception of the same name, its text in valid UTF-8; otherwise the worker dies while it sends the error."""
    original = type(error)
    base = Exception if isinstance(error, Exception) else BaseException
    names = {"__module__": original.__module__, "__qualname__": original.__qualname__}
    same_name: Any = type(original.__name__, (base,), names)
    copied: BaseException = same_name(message_of(error)).with_traceback(error.__traceback__)
    for note in getattr(error, "__notes__", ()):
        copied.add_note(as_text(note))
    return copied
