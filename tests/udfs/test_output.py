"""The output: arrays of results, and what becomes of one that does not fit."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import types as T  # noqa: N812 - what everybody calls it

from udfs._output import ERROR_TYPE, Output, error_array
from udfs._results import ResultTypeError, arrow_type
from udfs._rows import Failure

POINT = T.StructType([T.StructField("x", T.DoubleType()), T.StructField("y", T.LongType())])


def output(kind: T.DataType = T.LongType(), on_error: Any = "raise") -> Output:  # noqa: B008 - has no state
    return Output(kind, zone="UTC", on_error=on_error, name="look_up")


def test_results_become_an_array_of_the_declared_type(rows: Any) -> None:
    array = output().array(rows("abc"), [1, None, 3])
    assert array.type == arrow_type(T.LongType())
    assert array.to_pylist() == [1, None, 3]


def test_no_rows_are_an_empty_array_of_the_declared_type() -> None:
    array = output(POINT).array([], [])
    assert array.type == arrow_type(POINT)
    assert len(array) == 0


def test_a_misfit_is_an_error_that_names_function_value_type_and_row(rows: Any) -> None:
    with pytest.raises(ResultTypeError) as caught:
        output().array(rows("abc"), [1, "two", 3])
    message = str(caught.value)
    assert message.startswith("look_up returned str 'two', which is no bigint (")
    assert message.endswith(", for row ('b')")


def test_a_misfit_of_a_struct_says_what_the_difference_is(rows: Any) -> None:
    with pytest.raises(ResultTypeError) as caught:
        output(POINT).array(rows("ab"), [(1.0, 2), {"x": 1.0}])
    assert str(caught.value) == "look_up returned dict {'x': 1.0} without y, for row ('b')"


def test_a_misfit_deep_inside_is_found_too(rows: Any) -> None:
    with pytest.raises(ResultTypeError, match=r"no array<struct<x:double,y:bigint>>.*row \('a'\)"):
        output(T.ArrayType(POINT)).array(rows("a"), [[(1.0, 2), (1.0, "two")]])


def test_a_huge_misfit_is_shortened(rows: Any) -> None:
    with pytest.raises(ResultTypeError) as caught:
        output().array(rows("a"), ["x" * 100_000])
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("on_error", ["null", "column"])
def test_a_misfit_becomes_null_and_harms_no_neighbour(rows: Any, on_error: Any) -> None:
    batch = rows("abcde")
    array = output(POINT, on_error).array(batch, [(1.0, 1), "two", None, (4.0, "four"), {"x": 5.0, "y": 5}])
    assert array.to_pylist() == [{"x": 1.0, "y": 1}, None, None, None, {"x": 5.0, "y": 5}]
    assert [row.failure is not None for row in batch] == [False, True, False, True, False]
    assert isinstance(batch[1].failure.exception, ResultTypeError)


def test_a_misfits_failure_says_how_often_and_how_long_it_was_called(rows: Any) -> None:
    [row] = rows("a")
    row.attempts, row.seconds = 3, 1.5
    output(on_error="column").array([row], ["one"])
    assert (row.failure.attempts, row.failure.seconds) == (3, 1.5)


def test_a_row_that_failed_before_keeps_its_failure(rows: Any) -> None:
    failed, misfit = rows("ab")
    failed.failure = Failure(ConnectionError("no route"), 1, 0.5)
    output(on_error="column").array([failed, misfit], [None, "two"])
    assert repr(failed.failure.exception) == "ConnectionError('no route')"


def test_the_error_column_is_null_where_all_went_well(rows: Any) -> None:
    batch = rows("ab")
    batch[1].failure = Failure(TimeoutError("too slow"), 2, 1.5)
    array = error_array(batch)
    assert array.type == arrow_type(ERROR_TYPE)
    assert array.to_pylist() == [None, {"type": "TimeoutError", "message": "too slow", "attempts": 2, "seconds": 1.5}]


def test_the_result_of_a_function_whose_repr_raises_is_told_all_the_same(rows: Any) -> None:
    class Shy:
        def __repr__(self) -> str:
            raise RuntimeError("do not look at me")

    with pytest.raises(ResultTypeError, match=r"returned Shy .*row \('a'\)"):
        output().array(rows("a"), [Shy()])
    with pytest.raises(ResultTypeError, match=r"returned Shy .*row \('a'\)"):
        output(POINT).array(rows("a"), [Shy()])
