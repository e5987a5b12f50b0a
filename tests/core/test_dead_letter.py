"""Pickled dead letters keep their error, or a `LostError` with its message."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from trio_asyncio_io import AttemptTimeoutError, DeadLetter, ElementTimeoutError, LostError
from trio_asyncio_io._values.exceptions import add_note


class KeywordOnlyError(Exception):
    """Can be pickled but not unpickled, like many exceptions of client libraries."""

    def __init__(self, *, code: int) -> None:
        super().__init__(f"code {code}")


class StatusError(Exception):
    """Unpickles with another message, because `__init__` receives the message instead of the code."""

    def __init__(self, code: int) -> None:
        super().__init__(f"failed with code {code}")
        self.code = code


class OtherTypeError(Exception):
    def __reduce__(self) -> Any:
        return ValueError, self.args


class ForgetfulError(Exception):
    """Drops its notes."""

    def __reduce__(self) -> Any:
        return type(self), self.args


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class UnpicklableError(Exception):
    def __reduce__(self) -> Any:
        raise RuntimeError("no pickle")


class NamedError(Exception):
    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class FrozenError(Exception):
    code: int


def through_pickle(error: Exception) -> Any:
    dead_letter = pickle.loads(pickle.dumps(DeadLetter("a", error, 2, 0.5)))
    assert (dead_letter.element, dead_letter.attempts, dead_letter.seconds) == ("a", 2, 0.5)
    return dead_letter.error


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (KeywordOnlyError(code=503), "KeywordOnlyError: code 503"),
        (FrozenError(503), "FrozenError: 503"),
        (UnpicklableError("x"), "UnpicklableError: x"),
        (StatusError(503), "StatusError: failed with code 503"),
        (OtherTypeError("x"), "OtherTypeError: x"),
        (ValueError(lambda: None, "x"), r"ValueError: \(<function .*"),
        (UnpicklableError("\ud800"), "UnpicklableError: \ud800"),
        (UnprintableError(lambda: None), "UnprintableError: <UnprintableError whose str raised RuntimeError>"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_that_cannot_be_pickled_becomes_a_lost_error_with_its_message(error: Exception, message: str) -> None:
    with pytest.raises(LostError, match=f"^{message}$"):
        raise through_pickle(error)


@pytest.mark.parametrize("error", [KeywordOnlyError(code=503), ForgetfulError("x")], ids=["unpicklable", "forgetful"])
def test_a_lost_error_keeps_the_notes_and_the_cause(error: Exception) -> None:
    error.__cause__ = OSError("reset")
    error.add_note("first")
    add_note(error, "second")
    lost = through_pickle(error)
    assert lost.__notes__ == ["first", "second"]
    assert repr(lost.__cause__) == "OSError('reset')"


@pytest.mark.parametrize(
    "error",
    [
        KeyError("k"),
        OSError(2, "No such file", "/x"),
        ElementTimeoutError("late", 2.5),
        AttemptTimeoutError("late"),  # its timeout is NaN
        NamedError("busy", 7),
        LostError("ValueError: x"),
        ValueError(math.nan),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_other_errors_keep_type_message_arguments_attributes_and_notes(error: Exception) -> None:
    error.__dict__["__notes__"] = ["first"]
    twin = through_pickle(error)
    assert (type(twin), str(twin), repr(twin.args)) == (type(error), str(error), repr(error.args))
    assert repr(vars(twin)) == repr(vars(error))


def test_each_cause_is_pickled_separately() -> None:
    first, second, third = StatusError(503), KeywordOnlyError(code=404), OSError("reset")
    first.__cause__, second.__cause__, third.__cause__ = second, third, second  # a cycle
    error = through_pickle(first)
    assert repr(error) == "LostError('StatusError: failed with code 503')"
    assert repr(error.__cause__) == "LostError('KeywordOnlyError: code 404')"
    assert repr(error.__cause__.__cause__) == "OSError('reset')"
    assert error.__cause__.__cause__.__cause__ is None


def test_a_group_with_a_member_that_cannot_be_pickled_is_replaced() -> None:
    group = ExceptionGroup("outer", [ExceptionGroup("inner", [OSError("reset")]), ValueError("x")])
    assert repr(through_pickle(group)) == repr(group)
    with pytest.raises(LostError, match=r"^ExceptionGroup: outer \(2 sub-exceptions\)$"):
        raise through_pickle(ExceptionGroup("outer", [KeywordOnlyError(code=404), ValueError("x")]))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_has_the_same_error(copied: Callable[[DeadLetter], DeadLetter]) -> None:
    error = KeyError("k")
    error.__cause__ = cause = KeywordOnlyError(code=503)
    twin = copied(DeadLetter("a", error, 1, 0.5))
    assert (type(twin.error), twin.error.args, error.__cause__) == (KeyError, ("k",), cause)
