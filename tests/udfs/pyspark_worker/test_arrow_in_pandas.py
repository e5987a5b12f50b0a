"""Arrow in a pandas UDF, with a stand-in for the serializer of PySpark 3.5 and 4.0. Real ones: tests/real/spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql.types import LongType

import udfs._pyspark_worker
from udfs._pyspark_worker import _Exchange, _in_pandas_udf, _is_serializer
from udfs._spark_task import SparkTask

LARGE = [2**60 + 1, None]


class Serializer:
    """Has only the methods that the exchange replaces, with the parameters of PySpark's."""

    def arrow_to_pandas(self, arrow_column: Any) -> Any:
        raise NotImplementedError

    def _create_batch(self, series: Any) -> Any:
        raise NotImplementedError


@pytest.fixture
def serializer() -> Any:
    return Serializer()


@pytest.fixture
def exchange(serializer: Any) -> _Exchange:
    exchange = _Exchange("look_up", serializer)
    exchange.replace_input()
    return exchange


@pytest.mark.parametrize("chunks", [[LARGE], [LARGE[:1], LARGE[1:]]])
def test_an_input_column_is_its_array(serializer: Any, exchange: _Exchange, chunks: list[list[Any]]) -> None:
    column = serializer.arrow_to_pandas(pa.chunked_array(chunks, pa.int64()))
    assert len(column) == 2
    assert exchange.arrays(column) == pa.array(LARGE)
    assert exchange.arrays((column, column)) == (pa.array(LARGE), pa.array(LARGE))


@pytest.mark.parametrize("names", [None, ["a"], ["a", "b"]], ids=str)
def test_a_result_leaves_as_its_array(serializer: Any, exchange: _Exchange, names: list[str] | None) -> None:
    array = pa.array([dict.fromkeys(names or "v", value) for value in LARGE])
    stand_in = exchange.result(array, names, to_spark=True)
    assert len(stand_in) == 2
    assert isinstance(stand_in, pd.Series if names is None else pd.DataFrame)
    assert serializer._create_batch((stand_in, array.type)).column(0) == array


def test_a_result_gets_the_type_that_spark_expects(serializer: Any, exchange: _Exchange) -> None:
    """Spark 4.0 expects large strings if the session has `useLargeVarTypes`."""
    stand_in = exchange.result(pa.array(["a"]), None, to_spark=True)
    assert serializer._create_batch((stand_in, pa.large_string())).column(0) == pa.array(["a"], pa.large_string())


def test_the_result_of_one_function_is_the_input_of_another(exchange: _Exchange) -> None:
    assert exchange.arrays(pa.array(LARGE)) == pa.array(LARGE)


@pytest.mark.parametrize(
    "alter",
    [pd.Series.copy, pd.Series.isna, lambda stand_in: pd.Series([1, 2]), lambda stand_in: stand_in[:1]],
    ids=["copy", "isna", "other", "part"],
)
def test_what_another_udf_has_made_of_a_result_is_refused(serializer: Any, exchange: _Exchange, alter: Any) -> None:
    altered = alter(exchange.result(pa.array(LARGE), None, to_spark=True))
    with pytest.raises(
        RuntimeError, match=r"look_up cannot exchange Arrow data .* another pandas UDF: use ordered_wait"
    ):
        serializer._create_batch((altered, pa.int64()))


@pytest.mark.parametrize("kind", [pa.int64(), pa.string(), pa.float64(), pa.bool_()], ids=str)
def test_a_worker_that_would_convert_a_result_itself_raises(exchange: _Exchange, kind: pa.DataType) -> None:
    """Instead of sending nulls to Spark."""
    stand_in = exchange.result(pa.array(LARGE), None, to_spark=True)
    with pytest.raises((pa.ArrowException, TypeError)):
        pa.Array.from_pandas(stand_in, mask=stand_in.isna(), type=kind)
    with pytest.raises(RuntimeError, match=r"the Python worker of this Spark, .*: use ordered_wait, or Spark 4\.1 or"):
        stand_in.map(str)


def test_a_serializer_is_recognised_by_its_conversions(serializer: Any) -> None:
    assert _is_serializer(serializer)
    assert not _is_serializer(None)
    for name in ("arrow_to_pandas", "_create_batch"):
        other = Serializer()
        vars(other)[name] = lambda arrow_column, idx: None
        assert not _is_serializer(other)


def test_a_serializer_that_ignores_the_replacement_gets_pandas_objects(exchange: _Exchange) -> None:
    """Its outputs, too, because it would ignore that replacement as well."""
    assert exchange.arrays(pd.Series([1, 2])) == pa.array([1, 2])
    result = exchange.result(pa.array(LARGE), None, to_spark=True)
    assert pa.array(result) == pa.array(LARGE)


def test_a_worker_with_other_serializers_gets_pandas_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    def double(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        for batch in batches:
            yield pa.array([2 * value for value in batch.to_pylist()])

    monkeypatch.setattr(SparkTask, "current", object)
    monkeypatch.setattr(udfs._pyspark_worker, "_is_serializer", lambda found: False)
    run = _in_pandas_udf(double, LongType())
    [result] = run(iter([pd.Series([2**60 + 1, 1])]))
    assert result.tolist() == [2**61 + 2, 2]
    with pytest.raises(RuntimeError, match=r"double cannot exchange a number that may be null or NaN with Spark "):
        list(run(iter([pd.Series([1.0, None])])))
