"""Columns that report how the calls for each row went."""

from __future__ import annotations

from typing import Any

import pytest

from udfs._sent.arrow_types import arrow_type
from udfs._sent.extra_columns import ERROR_TYPE, error_array, metadata_array
from udfs._sent.row import Failure


def test_the_error_column_is_null_for_a_row_that_did_not_fail(rows: Any) -> None:
    batch = rows("ab")
    batch[1].failure = Failure(TimeoutError("too slow"), 2, 1.5)
    array = error_array(batch)
    assert array.type == arrow_type(ERROR_TYPE)
    assert array.to_pylist() == [None, {"type": "TimeoutError", "message": "too slow", "attempts": 2, "seconds": 1.5}]


class MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("exception", "kind", "message"),
    [
        (MuteError(), "MuteError", "<str() of the exception raised RuntimeError>"),
        (OSError("cannot open caf\udce9.txt"), "OSError", r"cannot open caf\udce9.txt"),
        (type("B" * 5_000, (Exception,), {})("x"), "B" * 200, "x"),
        (ValueError("x" * 5_000), "ValueError", "x" * 2_000 + "… (5,000 characters)"),
    ],
    ids=["mute", "surrogate", "name", "long"],
)
def test_any_exception_can_be_stored_in_the_error_and_metadata_columns(
    rows: Any, exception: Exception, kind: str, message: str
) -> None:
    [row] = rows("a")
    row.failure = Failure(exception, 1, 0.5)
    [error] = error_array([row]).to_pylist()
    assert (error["type"], error["message"]) == (kind, message)
    assert metadata_array([row]).to_pylist()[0]["error"] == kind
