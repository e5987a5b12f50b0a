"""Argument checks: the value is returned, or refused with its name, its legal range and itself."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from trio_asyncio_io._values.checks import (
    check_callable,
    check_callback,
    check_exception_types,
    check_int,
    check_name,
    check_number,
    check_path,
    check_seconds,
)


class Int64:
    def __index__(self) -> int:
        return 7


async def wait(*_: Any) -> None: ...


class Waits:
    async def __call__(self) -> None: ...

    async def wait(self) -> None: ...


def check_share(name: str, value: Any) -> float:
    return check_number(name, value, "a share from 0.0 to 1.0", lambda share: 0 <= share <= 1, noun="a share")


def test_an_integer_of_another_library_becomes_an_int() -> None:
    assert type(check_int("size", Int64(), at_least=7)) is int


@pytest.mark.parametrize(("value", "options"), [(0, {}), (math.inf, {}), (0.5, {"positive": True, "finite": True})])
def test_legal_seconds_are_returned_as_a_float(value: float, options: dict[str, bool]) -> None:
    seconds = check_seconds("delay", value, **options)
    assert seconds == value
    assert isinstance(seconds, float)


def test_one_exception_type_is_returned_as_a_tuple() -> None:
    assert check_exception_types("errors", OSError) == (OSError,)
    assert check_exception_types("errors", (OSError, KeyError)) == (OSError, KeyError)


def test_a_path_object_is_returned_as_a_string() -> None:
    assert check_path("path", Path("a") / "b") == str(Path("a") / "b")


def test_a_path_may_begin_with_the_home_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert check_path("path", "~/a") == str(tmp_path / "a")
    assert check_path("path", "a/~") == "a/~"


@pytest.mark.parametrize(
    ("check", "value", "options", "error", "message"),
    [
        (check_int, 1.0, {"at_least": 1}, TypeError, "x must be a whole number, got 1.0"),
        (check_int, True, {"at_least": 1}, TypeError, "x must be a whole number, got True"),
        (check_int, 0, {"at_least": 1}, ValueError, "x must be at least 1, got 0"),
        (check_int, 9, {"at_least": 1, "at_most": 8}, ValueError, "x must be at most 8, got 9"),
        (check_int, 7, {"at_least": 8, "limit_name": "y"}, ValueError, "x must be at least y, 8, got 7"),
        (check_share, True, {}, TypeError, "x must be a share, got True"),
        (check_share, 1.5, {}, ValueError, "x must be a share from 0.0 to 1.0, got 1.5"),
        (check_share, math.nan, {}, ValueError, "x must be a share from 0.0 to 1.0, got nan"),
        (
            check_seconds,
            "5",
            {"hint": " (or not)"},
            TypeError,
            "x must be seconds as a number such as 5.0 (or not), got '5'",
        ),
        (check_seconds, -1, {}, ValueError, "x must be seconds, not negative and not NaN, got -1"),
        (check_seconds, math.nan, {}, ValueError, "x must be seconds, not negative and not NaN, got nan"),
        (check_seconds, math.inf, {"finite": True}, ValueError, "x must be finite seconds and not negative, got inf"),
        (check_seconds, 0, {"positive": True}, ValueError, "x must be seconds above 0, got 0"),
        (check_callable, "f", {}, TypeError, "x must be callable, got 'f'"),
        (check_callback, "f", {}, TypeError, "x must be callable, got 'f'"),
        (check_callback, wait, {}, TypeError, "x must not be async, got <function wait at 0x"),
        (check_callback, partial(wait, 1), {}, TypeError, "x must not be async, got partial(<function wait at 0x"),
        (check_callback, Waits().wait, {}, TypeError, "x must not be async, got <bound method Waits.wait>: write it "),
        (check_callback, Waits(), {}, TypeError, "x must not be async, got <tests.core.test_checks.Waits object at"),
        (
            check_exception_types,
            [OSError],
            {},
            TypeError,
            "x must be a subclass of Exception or a tuple of them, got [<class",
        ),
        (
            check_exception_types,
            BaseException,
            {},
            TypeError,
            "x must be a subclass of Exception or a tuple of them, got",
        ),
        (check_path, b"file", {}, TypeError, "x must be a file's path, got b'file'"),
        (check_path, ":memory:", {}, ValueError, "x must be a file's path, got ':memory:'"),
        (check_seconds, 10**400, {"finite": True}, ValueError, "x must be finite seconds and not negative, got 1000"),
        (check_name, None, {}, TypeError, "x must be a string, got None"),
        (check_name, "", {}, ValueError, "x must not be empty, got ''"),
        (check_name, "\ud800", {}, ValueError, r"x must be text that UTF-8 can encode, got '\ud800'"),
    ],
)
def test_an_illegal_value_is_refused_with_its_name_its_legal_range_and_itself(
    check: Any, value: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        check("x", value, **options)
    assert str(caught.value).startswith(message)
