"""Copies of exceptions: equal to the original, and independent of it."""

from __future__ import annotations

import traceback
from typing import Any

import pytest

from trio_asyncio_io import ElementTimeoutError
from trio_asyncio_io._values.exceptions import copied, without_frames


class Keyword(Exception):  # noqa: N818 - a short name
    """Takes an argument that is not in `args`, as exceptions of httpx do."""

    def __init__(self, message: str, *, request: object) -> None:
        super().__init__(message)
        self.request = request


class Phrased(Exception):  # noqa: N818 - a short name
    """Derives its message from its argument: called with its `args`, it would do so twice."""

    def __init__(self, code: int) -> None:
        super().__init__(f"failed with {code}")
        self.code = code


class Counting(Exception):  # noqa: N818 - a short name
    made = 0

    def __init__(self) -> None:
        type(self).made += 1


class Slotted(Exception):  # noqa: N818 - a short name
    __slots__ = ("code", "unset")

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code


class Different(Exception):  # noqa: N818 - a short name
    """Each object has a message of its own."""

    def __str__(self) -> str:
        return str(id(self))


class Unprintable(Exception):  # noqa: N818 - a short name
    def __str__(self) -> str:
        raise OSError


ERRORS = [
    ValueError("bad", 3),
    KeyError("a"),
    OSError(2, "no such file", "path"),
    ConnectionResetError(104, "reset"),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"),
    ElementTimeoutError("too slow", 5.0),
    ExceptionGroup("two", [ValueError("a"), KeyError("b")]),
    ImportError("no", name="module"),
    Keyword("gone", request=object()),
    Phrased(404),
    Counting(),
    KeyboardInterrupt(),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_copy_has_the_type_arguments_message_and_attributes(error: BaseException) -> None:
    twin = copied(error)
    assert twin is not error
    assert type(twin) is type(error)
    assert twin.args == error.args
    assert str(twin) == str(error)
    assert vars(twin) == vars(error)


def test_an_exception_that_cannot_be_copied_faithfully_is_returned_itself() -> None:
    error = Different()
    assert copied(error) is error


def test_a_copy_has_the_attributes_in_slots() -> None:
    twin = copied(Slotted("bad", 503))
    assert (twin.args, twin.code, hasattr(twin, "unset")) == (("bad",), 503, False)


@pytest.mark.parametrize("error", [Slotted("bad"), Unprintable("bad")], ids=lambda error: type(error).__name__)
def test_what_gates_and_caches_keep_of_an_unusual_exception_has_no_frames(error: Exception) -> None:
    """They would keep the operator and its records."""
    raised(error)
    assert error.__traceback__ is not None
    kept = without_frames(error)
    assert (kept.args, kept.__traceback__, kept.__cause__, kept.__context__) == (("bad",), None, None, None)


def fail(error: Exception) -> None:
    try:
        {}["a"]
    except KeyError as cause:
        raise error from cause


def raised(error: Exception) -> Any:
    with pytest.raises(type(error)) as caught:
        fail(error)
    return caught.value


def test_a_copy_has_the_cause_context_and_traceback() -> None:
    error = raised(ValueError("bad"))
    twin = copied(error)
    assert twin.__cause__ is error.__cause__
    assert twin.__context__ is error.__context__
    assert twin.__suppress_context__
    assert traceback.format_exception(twin) == traceback.format_exception(error)


def test_copying_does_not_suppress_the_context() -> None:
    error = ValueError("bad")
    error.__context__ = KeyError("a")
    assert not copied(error).__suppress_context__


def test_a_note_added_to_one_is_not_added_to_the_other() -> None:
    error = ValueError("bad")
    error.add_note("of both")
    twin = copied(error)
    twin.add_note("of the copy")
    error.add_note("of the original")
    assert (error.__notes__, twin.__notes__) == (["of both", "of the original"], ["of both", "of the copy"])
