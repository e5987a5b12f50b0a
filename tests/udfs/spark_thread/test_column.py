"""The column UDF inside a task, without a JVM: arrays in, arrays out."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as T  # noqa: N812 - the usual name

from udfs._sent.signature import signature_of
from udfs._spark_thread.conversion import ColumnConversion
from udfs._spark_thread.misfits import ResultTypeError

POINT = T.StructType([T.StructField("x", T.DoubleType()), T.StructField("y", T.LongType())])


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


def test_there_are_as_many_results_as_rows(settings: Any) -> None:
    batches = [pa.array([1] * size, pa.int64()) for size in (0, 3, 0, 1, 700, 0)]
    assert len(results(conversion(settings, fail_on_two), *batches)) == 704
    assert results(conversion(settings, fail_on_two)) == []


def test_a_struct_result_is_a_struct_array(settings: Any) -> None:
    async def point(value: int) -> dict[str, Any] | None:
        return {"x": value / 2, "y": None} if value else None

    assert results(conversion(settings, point, POINT), pa.array([0, 1])) == [None, {"x": 0.5, "y": None}]


def test_on_error_null_replaces_failures_and_misfits_by_null(settings: Any) -> None:
    async def trouble(value: int) -> Any:
        return "three" if value == 3 else await fail_on_two(value)

    assert results(conversion(settings, trouble, on_error="null"), pa.array([1, 2, 3, 4])) == [10, None, None, 40]


def test_on_error_column_returns_a_struct_of_result_and_error(settings: Any) -> None:
    made = conversion(settings, fail_on_two, on_error="column")
    good, failed = results(made, pa.array([1, 2]))
    assert good == {"result": 10, "error": None}
    assert failed["result"] is None
    assert (failed["error"]["type"], failed["error"]["message"]) == ("ValueError", "two is too many")
    assert failed["error"]["attempts"] == 1
    assert failed["error"]["seconds"] >= 0


def test_a_misfit_fails_the_task_and_cancels_its_calls(settings: Any, tasks_of_the_loop: Any) -> None:
    async def trouble(value: int) -> Any:
        return "two" if value == 2 else value

    with pytest.raises(
        ResultTypeError, match=r"trouble returned str 'two' for row \(2\), but its result is declared bigint: "
    ):
        results(conversion(settings, trouble), pa.array([1, 2, 3]))
    assert tasks_of_the_loop() == []


def test_closing_the_generator_cancels_the_calls(settings: Any, tasks_of_the_loop: Any) -> None:
    arrays = conversion(settings, fail_on_two, buffer=2, capacity=2).run(iter([pa.array([1] * 100)] * 100))
    next(arrays)
    arrays.close()  # type: ignore[attr-defined]
    assert tasks_of_the_loop() == []
