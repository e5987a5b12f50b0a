"""pandas values: exact or refused."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from udfs._pyspark_worker import array_from_pandas, array_to_pandas

LARGE = 2**60 + 1

EXACT = {
    "flags": pa.array([True, None, False]),
    "bytes": pa.array([-128, None], pa.int8()),
    "numbers": pa.array([LARGE, None]),
    "all numbers": pa.array([LARGE, -LARGE]),
    "floats": pa.array([0.1, None, float("nan")]),
    "all floats": pa.array([0.1, -0.0], pa.float32()),
    "texts": pa.array(["", None, "Zürich"]),
    "raw": pa.array([b"\x00", None]),
    "prices": pa.array([Decimal("1.50"), None], pa.decimal128(38, 18)),
    "days": pa.array([date(1, 1, 1), None, date(9999, 12, 31)]),
    "nothing": pa.array([], pa.int64()),
    "nulls": pa.array([None, None], pa.int64()),
}


@pytest.mark.parametrize("array", EXACT.values(), ids=EXACT)
def test_a_result_keeps_every_value_as_pyspark_converts_it(array: pa.Array) -> None:
    series = array_to_pandas(array, "look_up")
    assert len(series) == len(array)
    mask = None if hasattr(series.array, "__arrow_array__") else series.isna()
    back = pa.Array.from_pandas(series, mask=mask, type=array.type)
    assert [repr(value) for value in back.to_pylist()] == [repr(value) for value in array.to_pylist()]


@pytest.mark.parametrize(
    "array",
    [
        pa.array([datetime(2020, 1, 1)]),
        pa.array([timedelta(1)]),
        pa.array([[1]]),
        pa.array([{"a": 1}]),
        pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
    ],
    ids=lambda array: str(array.type),
)
def test_a_result_that_pandas_would_alter_is_refused(array: pa.Array) -> None:
    with pytest.raises(RuntimeError, match=r"look_up cannot exchange a result of type .* use ordered_wait"):
        array_to_pandas(array, "look_up")


@pytest.mark.parametrize(
    "values",
    [
        [LARGE, -1],
        [True, False],
        [True, None],
        [0.5, -0.0],
        ["a", None],
        [b"\x00", None],
        [date(1, 1, 1), None],
        [Decimal("1.5"), None],
        [],
    ],
    ids=repr,
)
def test_an_input_keeps_every_value(values: list[Any]) -> None:
    back = array_from_pandas(pd.Series(values, dtype=None if values else object), "look_up").to_pylist()
    assert [repr(value) for value in back] == [repr(value) for value in values]


def test_a_nullable_integer_stays_an_integer() -> None:
    column = pd.Series([LARGE, None], dtype="Int64")
    assert array_from_pandas(column, "look_up") == pa.array([LARGE, None])


@pytest.mark.parametrize(
    ("column", "what"),
    [
        (pd.Series([1, None]), "a number that may be null or NaN"),
        (pd.Series([1.0, None], dtype="float32"), "a number that may be null or NaN"),
        (pd.Series([datetime(2020, 1, 1), None]), r"a value of type datetime64\[ns\]"),
        (pd.Series([np.array([1.0, np.nan]), None]), "a ndarray"),
        (pd.Series([{"a": 1}, None]), "a dict"),
        (pd.Series(["a", np.nan]), "a float"),
        (pd.Series([pd.Timestamp(0), "a"]), "a Timestamp"),
        (pd.DataFrame({"a": [1, 2]}), "a struct"),
    ],
    ids=["integers", "floats", "timestamps", "arrays", "maps", "nan", "timestamp", "struct"],
)
def test_an_input_that_pandas_may_have_altered_is_refused(column: Any, what: str) -> None:
    with pytest.raises(RuntimeError, match=rf"^look_up cannot exchange {what} with Spark .* use ordered_wait"):
        array_from_pandas(column, "look_up")
