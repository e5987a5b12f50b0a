"""Tracebacks: the frames of the user's code, the text of its exceptions, and what Spark shows of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from traceback import format_exception
from types import FrameType, TracebackType
from typing import Any, Final

from ._pyspark_worker import can_hide_traceback, hide_traceback

OWN_PACKAGES: Final = {"trio_asyncio_io", "udfs"}
# Modules of these packages are not the user's.
INFRASTRUCTURE: Final = (
    OWN_PACKAGES | {"outcome", "pyarrow", "pyspark", "trio", "trio_asyncio"} | sys.stdlib_module_names
)

MESSAGE_CHARACTERS: Final = 2_000
NAME_CHARACTERS: Final = 200


def is_user_frame(frame: FrameType) -> bool:
    """Whether a module outside this project, its libraries and the standard library defines the frame's code."""
    return _package_of(frame) not in INFRASTRUCTURE


def _package_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__")).partition(".")[0]


def starting_in_user_code(error: BaseException) -> BaseException:
    """The exception with its traceback cut to start at the first user frame; the whole traceback if it has none.

    Later frames of this project are removed, too.
    """
    traceback = _user_part(error.__traceback__)
    return error if traceback is None else error.with_traceback(traceback)


def _user_part(traceback: TracebackType | None) -> TracebackType | None:
    while traceback is not None and not is_user_frame(traceback.tb_frame):
        traceback = traceback.tb_next
    kept = []
    while traceback is not None:
        if _package_of(traceback.tb_frame) not in OWN_PACKAGES:
            kept.append(traceback)
        traceback = traceback.tb_next
    part = None
    for each in reversed(kept):
        part = TracebackType(part, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return part


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
    query they are in the middle of a page. The note starts at the first frame of the user's code, has no frame of this
    project, and includes the exception's cause, which Spark omits. If the user has configured the form of Spark's
    tracebacks, the exception leaves the block unchanged.

    Runs where: in Spark's thread of a Python worker, around the whole task.
    """
    try:
        yield
    except GeneratorExit:  # Spark needs no more rows
        raise
    except BaseException as error:
        if can_hide_traceback():
            if text := _traceback_text(error):
                error.add_note(as_text(f"\n{text}"))
            hide_traceback()
        text = "".join(format_exception(error))
        if as_text(text) != text:
            raise _encodable(error) from None
        raise


def _traceback_text(error: BaseException) -> str:
    """The traceback of the exception and its causes with the user's frames; empty if there are none.

    An exception that this project did not expect has a complete traceback: it is a defect.
    """
    chain = _with_causes(error)
    if any(_user_part(each.__traceback__) for each in chain):
        for each in chain:
            each.with_traceback(_user_part(each.__traceback__))
    elif hasattr(error, "__notes__") or type(error).__module__.partition(".")[0] in OWN_PACKAGES:
        return ""
    return "".join(format_exception(error)).rstrip()


def _with_causes(error: BaseException) -> list[BaseException]:
    """The exception, and all exceptions that are printed with it: causes, contexts and members of groups."""
    found: list[BaseException] = []
    todo: list[BaseException | None] = [error]
    while todo:
        each = todo.pop()
        if each is None or any(each is known for known in found):
            continue
        found.append(each)
        todo.append(each.__cause__ or (None if each.__suppress_context__ else each.__context__))
        if isinstance(each, BaseExceptionGroup):
            todo.extend(each.exceptions)
    return found


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
