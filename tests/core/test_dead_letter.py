"""A dead letter in a pickle: its error is equal to the one that was pickled, or a `LostError` with the same words."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import pytest

from trio_asyncio_io import AttemptTimeoutError, DeadLetter, ElementTimeoutError, LostError
from trio_asyncio_io._core.notes import Notes


class Fussy(Exception):  # noqa: N818 - reads as what it is
    """Pickles, and does not unpickle, as many exceptions of clients do."""

    def __init__(self, *, code: int) -> None:
        super().__init__(f"code {code}")


class StatusError(Exception):
    """Unpickles with another message: `__init__` gets the message in place of the code."""

    def __init__(self, code: int) -> None:
        super().__init__(f"failed with code {code}")
        self.code = code


class ChoosyError(StatusError):
    """Cannot be made without its `__init__` either."""

    def __new__(cls, code: Any) -> Self:
        return super().__new__(cls, f"<{code}>")


class DefaultError(Exception):
    """Unpickles with other arguments and the same message."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args, "default")

    def __str__(self) -> str:
        return "failed"


class OtherTypeError(Exception):
    def __reduce__(self) -> Any:
        return ValueError, self.args


class ForgetfulError(Exception):
    """Drops its notes."""

    def __reduce__(self) -> Any:
        return type(self), self.args


class MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class RefusingError(Exception):
    def __reduce__(self) -> Any:
        raise RuntimeError("no pickle")


class NamedError(Exception):
    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class FrozenError(Exception):
    code: int


class Reply:
    """Without an `__eq__`."""

    def __repr__(self) -> str:
        return "a reply"


class Rows(list[int]):
    """Compares as an array does."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> Any:
        raise ValueError("the truth value of an array is ambiguous")


def through_pickle(error: Exception) -> Any:
    letter = pickle.loads(pickle.dumps(DeadLetter("a", error, 2, 0.5)))
    assert (letter.element, letter.attempts, letter.seconds) == ("a", 2, 0.5)
    return letter.error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (Fussy(code=503), "Fussy: code 503"),
        (FrozenError(503), "FrozenError: 503"),
        (ChoosyError("x"), "ChoosyError: failed with code x"),
        (RefusingError("x"), "RefusingError: x"),
        (ValueError(lambda: None, "x"), r"ValueError: \(<function .*"),
        (RefusingError("\ud800"), "RefusingError: \ud800"),
        (MuteError(lambda: None), "MuteError: <MuteError whose str raised RuntimeError>"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_that_cannot_be_pickled_becomes_a_lost_error_with_its_message(error: Exception, words: str) -> None:
    with pytest.raises(LostError, match=f"^{words}$"):
        raise through_pickle(error)


def test_a_lost_error_keeps_the_notes_and_the_cause() -> None:
    error = Fussy(code=503)
    error.__cause__ = OSError("reset")
    error.add_note("first")
    Notes().add(error, "second")
    lost = through_pickle(error)
    assert lost.__notes__ == ["first", "second"]
    assert {type(note) for note in lost.__notes__} == {str}
    assert repr(lost.__cause__) == "OSError('reset')"


@pytest.mark.parametrize(
    "error",
    [
        KeyError("k"),
        OSError(2, "No such file", "/x"),
        ElementTimeoutError("late", 2.5),
        AttemptTimeoutError("late"),  # its timeout is NaN
        NamedError("busy", 7),
        StatusError(503),
        DefaultError("x"),
        OtherTypeError("x"),
        ForgetfulError("x"),
        LostError("ValueError: x"),
        ValueError(math.nan),
        ValueError(Reply()),
        ValueError(Rows([1, 2])),
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
    first, second, third = StatusError(503), Fussy(code=404), OSError("reset")
    first.__cause__, second.__cause__, third.__cause__ = second, third, second  # a circle
    error = through_pickle(first)
    assert repr(error) == "StatusError('failed with code 503')"
    assert repr(error.__cause__) == "LostError('Fussy: code 404')"
    assert repr(error.__cause__.__cause__) == "OSError('reset')"
    assert error.__cause__.__cause__.__cause__ is None


def test_only_members_of_a_group_that_cannot_be_pickled_are_replaced() -> None:
    inner = ExceptionGroup("inner", [StatusError(503), Fussy(code=404)])
    group = ExceptionGroup("outer", [inner, OSError("reset")])
    group.add_note("first")
    twin = through_pickle(group)
    assert (type(twin), twin.message, twin.__notes__) == (ExceptionGroup, "outer", ["first"])
    assert [repr(each) for each in twin.exceptions[0].exceptions] == [
        "StatusError('failed with code 503')",
        "LostError('Fussy: code 404')",
    ]
    assert repr(twin.exceptions[1]) == "OSError('reset')"


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_has_the_same_error(copied: Callable[[DeadLetter], DeadLetter]) -> None:
    error = KeyError("k")
    error.__cause__ = cause = Fussy(code=503)
    twin = copied(DeadLetter("a", error, 1, 0.5))
    assert (type(twin.error), twin.error.args, error.__cause__) == (KeyError, ("k",), cause)
