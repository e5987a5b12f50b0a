"""Arrow in a pandas UDF, with a stand-in for the serializer of PySpark 3.5 and 4.0. Real ones: tests/real/spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql.types import LongType

import udfs._pyspark_worker
from udfs._pyspark_worker import _in_pandas_udf, _is_serializer, _stand_in, _to_batch
from udfs._spark_task import SparkTask

ARRAY = pa.array([2**60 + 1, None])


class Serializer:
    """Has only the methods that are replaced, with the parameters of PySpark's."""

    def arrow_to_pandas(self, arrow_column: Any) -> Any:
        raise NotImplementedError

    def _create_batch(self, series: Any) -> Any:
        raise NotImplementedError


def same(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
    yield from batches


@pytest.mark.parametrize("names", [None, ["a"], ["a", "b"]], ids=str)
def test_a_result_leaves_as_its_array(names: list[str] | None) -> None:
    array = pa.array([dict.fromkeys(names or "v", value) for value in ARRAY.to_pylist()])
    stand_in = _stand_in(array, names)
    assert len(stand_in) == 2
    assert isinstance(stand_in, pd.Series if names is None else pd.DataFrame)
    assert _to_batch("look_up", (stand_in, array.type)).column(0) == array


def test_a_result_gets_the_type_that_spark_expects() -> None:
    """Spark 4.0 expects large strings if the session has `useLargeVarTypes`."""
    stand_in = _stand_in(pa.array(["a"]), None)
    assert _to_batch("look_up", (stand_in, pa.large_string())).column(0) == pa.array(["a"], pa.large_string())


@pytest.mark.parametrize(
    "alter",
    [pd.Series.copy, pd.Series.isna, lambda stand_in: pd.Series([1, 2]), lambda stand_in: stand_in[:1]],
    ids=["copy", "isna", "other", "part"],
)
def test_what_another_udf_has_made_of_a_result_is_refused(alter: Any) -> None:
    with pytest.raises(
        RuntimeError, match=r"look_up cannot exchange Arrow data .* another pandas UDF: use ordered_wait"
    ):
        _to_batch("look_up", (alter(_stand_in(ARRAY, None)), pa.int64()))


@pytest.mark.parametrize("kind", [pa.int64(), pa.string(), pa.float64(), pa.bool_()], ids=str)
def test_a_worker_that_would_convert_a_result_itself_raises(kind: pa.DataType) -> None:
    """Instead of sending nulls to Spark."""
    stand_in = _stand_in(ARRAY, None)
    with pytest.raises((pa.ArrowException, TypeError)):
        pa.Array.from_pandas(stand_in, mask=stand_in.isna(), type=kind)


def test_a_serializer_is_recognised_by_its_conversions() -> None:
    assert _is_serializer(Serializer())
    assert not _is_serializer(None)
    for name in ("arrow_to_pandas", "_create_batch"):
        other = Serializer()
        vars(other)[name] = lambda arrow_column, idx: None
        assert not _is_serializer(other)


def test_a_worker_with_other_serializers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkTask, "current", object)
    monkeypatch.setattr(udfs._pyspark_worker, "_is_serializer", lambda found: False)
    with pytest.raises(
        RuntimeError, match=r"same cannot exchange Arrow data .* use ordered_wait, or Spark 4\.1 or newer"
    ):
        next(_in_pandas_udf(same, LongType())(iter([ARRAY])))


def test_outside_a_task_it_takes_and_returns_arrays() -> None:
    assert list(_in_pandas_udf(same, LongType())(iter([ARRAY]))) == [ARRAY]
