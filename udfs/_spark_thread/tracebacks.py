"""Tracebacks as notes: Spark prints the exception's type and message first."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from traceback import format_exception
from typing import Any

from .._frames import starting_in_user_code
from .._text import as_text, message_of

__all__ = ["traceback_as_note"]


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
