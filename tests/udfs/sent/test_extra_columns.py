"""Columns that report how the calls for each row went."""

from __future__ import annotations

from typing import Any

import pytest

from trio_asyncio_io import Totals
from udfs._sent.column_types import ERROR_TYPE, MetricsColumn, arrow_type, error_array, metadata_array
from udfs._sent.row import Failure


def test_the_error_column_is_null_for_a_row_that_did_not_fail(rows: Any) -> None:
    batch = rows("ab")
    batch[1].failure = Failure(TimeoutError("too slow"), 2, 1.5)
    array = error_array(batch)
    assert array.type == arrow_type(ERROR_TYPE)
    assert array.to_pylist() == [None, {"type": "TimeoutError", "message": "too slow", "attempts": 2, "seconds": 1.5}]


def test_metrics_count_a_row_once_however_many_outputs_it_has(rows: Any) -> None:
    first, second = rows("ab")
    first.attempts, second.attempts = 2, 3
    metadata = MetricsColumn().array([first, first, second, second, second]).to_pylist()
    assert [each and each["attempts"] for each in metadata] == [2, None, 3, None, None]


def test_metrics_count_a_row_once_if_its_outputs_are_in_two_arrays(rows: Any) -> None:
    first, second = rows("ab")
    first.attempts, second.attempts = 2, 3
    column = MetricsColumn()
    metadata = [*column.array([first, first]).to_pylist(), *column.array([first, second]).to_pylist()]
    assert [each and each["attempts"] for each in metadata] == [2, None, None, 3]


def added(column: MetricsColumn, rows: Any) -> list[int]:
    metrics = [each for each in column.array(rows).to_pylist() if each and each["totals"]]
    return [each["totals"]["completed"] for each in metrics]


def test_each_chunk_adds_what_its_totals_have_more_than_those_before(rows: Any) -> None:
    first, second, third, fourth = rows("abcd")
    first.totals, third.totals = Totals(completed=3), Totals(completed=10)
    column = MetricsColumn()
    assert added(column, [first, first, second]) == [3]
    assert added(column, [third, fourth]) == [7]


def test_the_waits_for_gates_are_added_by_gate(rows: Any) -> None:
    first, second = rows("ab")
    first.totals = Totals(seconds_by_gate={"RateLimit": 2.0})
    second.totals = Totals(seconds_by_gate={"RateLimit": 5.0, "CircuitBreaker": 1.0})
    metrics = MetricsColumn().array([first, second]).to_pylist()
    by_gate = [dict(each["totals"]["seconds_by_gate"]) for each in metrics]
    assert by_gate == [{"RateLimit": 2.0}, {"RateLimit": 3.0, "CircuitBreaker": 1.0}]


def test_totals_of_rows_in_another_order_have_the_same_sum(rows: Any) -> None:
    batch = rows("abc")
    for calls, row in enumerate(batch, start=1):
        row.totals = Totals(completed=calls)
    assert sum(added(MetricsColumn(), [batch[1], batch[0], batch[2]])) == 3


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
