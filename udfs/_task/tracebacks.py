"""The headline: what a reader of a failed job sees first, which is what the user's function has raised."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from traceback import format_exception
from types import FrameType

from .._text import as_text, message_of

__all__ = ["headline_first"]


@contextmanager
def headline_first() -> Iterator[None]:
    """An exception leaves the block with its traceback in a note, so that type, message and row stand above it.

    Spark tells an exception by its traceback, whose last lines are what one wants to read first; behind a streaming
    query's text these lie in the middle of a page. It can also tell it without one, and then notes come right behind
    the message; a cause, which Spark's traceback leaves out, is in the note, too. Where the traceback's form was
    chosen by the user's own settings, they are left alone.

    Runs where: in Spark's thread of a Python worker, around all that a task does. The process ends with the
    exception, so what is said here to Spark is said to no other task.
    """
    try:
        yield
    except GeneratorExit:  # Spark wants no more rows
        raise
    except BaseException as error:
        if _is_default_form():
            error.add_note(as_text("\n" + "".join(format_exception(_without_ours(error))).rstrip()))
            os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        text = "".join(format_exception(error))
        if as_text(text) != text:
            raise _encodable(error) from None
        raise


def _encodable(error: BaseException) -> BaseException:
    """An exception of the same name whose text is valid UTF-8, or Spark's worker dies while it sends the error."""
    kind = type(error)
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    base = Exception if isinstance(error, Exception) else BaseException
    copy: BaseException = type(kind.__name__, (base,), names)(message_of(error))
    for note in getattr(error, "__notes__", ()):
        copy.add_note(as_text(note))
    return copy.with_traceback(error.__traceback__)


def _is_default_form() -> bool:
    simplified = bool(os.environ.get("SPARK_SIMPLIFIED_TRACEBACK"))
    other = any(os.environ.get(name) for name in ("SPARK_HIDE_TRACEBACK", "SPARK_TRACEBACK_WITH_LOCALS"))
    return simplified and not other


def _without_ours(error: BaseException) -> BaseException:
    """The exception with a traceback that starts below the frames of `udfs`, unless it has no other frames."""
    traceback = error.__traceback__
    while traceback is not None and _is_ours(traceback.tb_frame):
        traceback = traceback.tb_next
    return error if traceback is None else error.with_traceback(traceback)


def _is_ours(frame: FrameType) -> bool:
    module = str(frame.f_globals.get("__name__"))
    return module.startswith("udfs.") and not module.startswith("udfs.demo.")  # the demo's functions are a user's
