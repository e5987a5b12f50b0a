"""The column UDF inside a task, without a JVM: arrays in, arrays out."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as T  # noqa: N812 - the usual name

from udfs._sent.signature import signature_of
from udfs._spark_thread.conversion import ColumnConversion


async def fail_on_two(value: int) -> int:
    if value == 2:
        raise ValueError("two is too many")
    return 10 * value


def conversion(settings: Any, function: Any, kind: T.DataType = T.LongType(), **more: Any) -> ColumnConversion:  # noqa: B008
    return ColumnConversion(settings(function, **more), kind, "UTC")


def results(made: ColumnConversion, *batches: Any) -> list[Any]:
    return [value for array in made.run(batches) for value in array.to_pylist()]


def test_an_array_of_inputs_becomes_an_array_of_results(settings: Any) -> None:
    made = conversion(settings, fail_on_two)
    assert results(made, pa.array([3, None, 4]).drop_null(), pa.array([5])) == [30, 40, 50]


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (
            (pa.array([1]), pa.array(["a"])),
            r"^fail_on_two takes \(value\), got 2 columns \(int64, string\): ",
        ),
        ((), "^fail_on_two needs at least one column: "),
    ],
    ids=["two", "none"],
)
def test_a_wrong_number_of_columns_fails_the_task(settings: Any, batch: Any, message: str) -> None:
    """The driver does not see the columns of a call in SQL."""
    signature = signature_of(fail_on_two)
    made = ColumnConversion(settings(fail_on_two, on_error="null"), T.LongType(), "UTC", signature)
    with pytest.raises(TypeError, match=message):
        results(made, batch)


def test_several_columns_are_tuples_of_arrays(settings: Any) -> None:
    async def join(number: int | None, text: str | None) -> str:
        return f"{number}{text}"

    made = conversion(settings, join, T.StringType())
    batches = [(pa.array([1, None]), pa.array(["a", "b"])), (pa.array([3]), pa.array([None], pa.string()))]
    assert results(made, *batches) == ["1a", "Noneb", "3None"]


def test_on_error_column_returns_a_struct_of_result_and_error(settings: Any) -> None:
    made = conversion(settings, fail_on_two, on_error="column")
    good, failed = results(made, pa.array([1, 2]))
    assert good == {"result": 10, "error": None}
    assert failed["result"] is None
    assert (failed["error"]["type"], failed["error"]["message"]) == ("ValueError", "two is too many")
    assert failed["error"]["attempts"] == 1
    assert failed["error"]["seconds"] >= 0
