"""Arrow in a pandas UDF, with a stand-in for the serializer of PySpark 3.5 and 4.0. Real ones: tests/real/spark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from udfs._task.arrow_in_pandas import _Exchange

LARGE = [2**60 + 1, None]


@pytest.fixture
def serializer() -> Any:
    """Has only the attributes that the exchange sets."""
    return SimpleNamespace()


@pytest.fixture
def exchange(serializer: Any) -> _Exchange:
    return _Exchange(serializer, "look_up")


@pytest.mark.parametrize("chunks", [[LARGE], [LARGE[:1], LARGE[1:]]])
def test_an_input_column_is_its_array(serializer: Any, exchange: _Exchange, chunks: list[list[Any]]) -> None:
    column = serializer.arrow_to_pandas(pa.chunked_array(chunks, pa.int64()))
    assert len(column) == 2
    assert exchange.arrays(column) == pa.array(LARGE)
    assert exchange.arrays((column, column)) == (pa.array(LARGE), pa.array(LARGE))


@pytest.mark.parametrize("names", [None, ["a"], ["a", "b"]], ids=str)
def test_a_result_leaves_as_its_array(serializer: Any, exchange: _Exchange, names: list[str] | None) -> None:
    array = pa.array([dict.fromkeys(names or "v", value) for value in LARGE])
    stand_in = exchange.stand_in(array, names)
    assert len(stand_in) == 2
    assert isinstance(stand_in, pd.Series if names is None else pd.DataFrame)
    assert serializer._create_batch((stand_in, array.type)).column(0) == array


def test_a_result_gets_the_type_that_spark_expects(serializer: Any, exchange: _Exchange) -> None:
    """Spark 4.0 expects large strings if the session has `useLargeVarTypes`."""
    batch = serializer._create_batch((exchange.stand_in(pa.array(["a"]), None), pa.large_string()))
    assert batch.column(0) == pa.array(["a"], pa.large_string())


def test_the_result_of_one_function_is_the_input_of_another(exchange: _Exchange) -> None:
    assert exchange.arrays(exchange.stand_in(pa.array(LARGE), None)) == pa.array(LARGE)


@pytest.mark.parametrize(
    "alter",
    [pd.Series.copy, pd.Series.isna, lambda stand_in: pd.Series([1, 2]), lambda stand_in: stand_in[:1]],
    ids=["copy", "isna", "other", "part"],
)
def test_what_another_udf_has_made_of_a_result_is_refused(serializer: Any, exchange: _Exchange, alter: Any) -> None:
    altered = alter(exchange.stand_in(pa.array(LARGE), None))
    for receive in (exchange.arrays, lambda each: serializer._create_batch((each, pa.int64()))):
        with pytest.raises(RuntimeError, match=r"look_up and a pandas UDF over iterators .* use ordered_wait"):
            receive(altered)


@pytest.mark.parametrize("kind", [pa.int64(), pa.string(), pa.float64(), pa.bool_()], ids=str)
def test_a_worker_that_would_convert_a_result_itself_raises(exchange: _Exchange, kind: pa.DataType) -> None:
    """Instead of sending nulls to Spark."""
    stand_in = exchange.stand_in(pa.array(LARGE), None)
    with pytest.raises((pa.ArrowException, TypeError)):
        pa.Array.from_pandas(stand_in, mask=stand_in.isna(), type=kind)
    with pytest.raises(RuntimeError, match=r"differs from Apache Spark's: use ordered_wait, or Spark 4\.1 or newer"):
        stand_in.map(str)
