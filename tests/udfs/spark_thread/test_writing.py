"""Results as arrays, and results that do not fit the declared type."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from traceback import format_exception
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as T  # noqa: N812 - the usual name

from udfs._plan.arguments import make_settings
from udfs._sent.arrow_types import arrow_type
from udfs._sent.row import Failure, Row
from udfs._spark_thread.misfits import ResultTypeError
from udfs._spark_thread.reading import rows_of
from udfs._spark_thread.writing import ResultWriter

POINT = T.StructType([T.StructField("x", T.DoubleType()), T.StructField("y", T.LongType())])


async def look_up(key: str) -> Any: ...


def writer(kind: T.DataType = T.LongType(), **settings: Any) -> ResultWriter:  # noqa: B008 - has no state
    return ResultWriter(kind, "UTC", make_settings(look_up, 5.0, settings))


def secret_rows() -> list[Row]:
    return rows_of([pa.array(["a"])], 0, show_values=False)


def array_of(made: ResultWriter, rows: Any, values: Any) -> Any:
    """The only array."""
    [(part, array)] = made.write(rows, values)
    assert part == rows
    return array


def test_results_become_an_array_of_the_declared_type(rows: Any) -> None:
    array = array_of(writer(), rows("abc"), [1, None, 3])
    assert array.type == arrow_type(T.LongType())
    assert array.to_pylist() == [1, None, 3]


def test_no_rows_become_an_empty_array_of_the_declared_type() -> None:
    array = array_of(writer(POINT), [], [])
    assert array.type == arrow_type(POINT)
    assert len(array) == 0


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (T.DoubleType(), "4111-1111"),
        (T.IntegerType(), "4111-1111"),
        (T.DecimalType(3, 1), Decimal("4111.1111")),
        (T.VarcharType(3), "4111-1111"),
        (T.ArrayType(T.DoubleType()), ["4111-1111"]),
        (POINT, {"x": "4111-1111", "y": 1}),
    ],
    ids=str,
)
def test_with_show_values_false_no_part_of_the_traceback_has_the_value(rows: Any, kind: T.DataType, value: Any) -> None:
    with pytest.raises(ResultTypeError) as caught:
        array_of(writer(kind, show_values=False), secret_rows(), [value])
    assert "4111" not in "".join(format_exception(caught.value))


def test_a_long_misfit_is_shortened_in_the_message(rows: Any) -> None:
    with pytest.raises(ResultTypeError) as caught:
        array_of(writer(), rows("a"), ["x" * 100_000])
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("on_error", ["null", "column"])
def test_a_misfit_becomes_null_and_does_not_affect_other_rows(rows: Any, on_error: Any) -> None:
    batch = rows("abcde")
    array = array_of(
        writer(POINT, on_error=on_error), batch, [(1.0, 1), "two", None, (4.0, "four"), {"x": 5.0, "y": 5}]
    )
    assert array.to_pylist() == [{"x": 1.0, "y": 1}, None, None, None, {"x": 5.0, "y": 5}]
    assert [row.failure is not None for row in batch] == [False, True, False, True, False]
    assert isinstance(batch[1].failure.exception, ResultTypeError)


def test_the_failure_of_a_misfit_has_the_attempts_and_seconds_of_its_row(rows: Any) -> None:
    [row] = rows("a")
    row.attempts, row.seconds = 3, 1.5
    array_of(writer(on_error="column"), [row], ["one"])
    assert (row.failure.attempts, row.failure.seconds) == (3, 1.5)


def test_an_earlier_failure_of_a_row_is_not_replaced(rows: Any) -> None:
    failed, misfit = rows("ab")
    failed.failure = Failure(ConnectionError("no route"), 1, 0.5)
    array_of(writer(on_error="column"), [failed, misfit], [None, "two"])
    assert repr(failed.failure.exception) == "ConnectionError('no route')"


def test_a_misfit_whose_repr_raises_is_reported(rows: Any) -> None:
    class Broken:
        def __repr__(self) -> str:
            raise RuntimeError("no repr")

    with pytest.raises(ResultTypeError, match=r"returned Broken .*row \('a'\)"):
        array_of(writer(), rows("a"), [Broken()])
    with pytest.raises(ResultTypeError, match=r"returned Broken .*row \('a'\)"):
        array_of(writer(POINT), rows("a"), [Broken()])


def test_a_generator_next_to_a_misfit_is_read_once(rows: Any) -> None:
    batch = rows("abcd")
    numbers = writer(T.ArrayType(T.LongType()), on_error="column")
    values = [(n for n in [1, 2]), "misfit", iter([2**70]), {3: None}.keys()]
    assert array_of(numbers, batch, values).to_pylist() == [[1, 2], None, None, [3]]
    assert [row.failure is not None for row in batch] == [False, True, True, False]


def test_a_generator_that_raises_is_a_misfit(rows: Any) -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise ConnectionError("reset by peer")

    batch = rows("ab")
    array = array_of(writer(T.ArrayType(T.LongType()), on_error="column"), batch, [broken(), [2]])
    assert array.to_pylist() == [None, [2]]
    message = str(batch[0].failure.exception)
    assert message.startswith("look_up returned generator <generator object")
    assert message.endswith("but its result is declared array<bigint>: it raised ConnectionError: reset by peer")


def test_values_too_large_for_one_array_are_divided_with_their_rows(rows: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow splits values of more than 2 GiB. Here, it splits after each value."""
    made = writer(T.StringType())
    split = lambda values: pa.chunked_array([[value] for value in values], pa.string())  # noqa: E731 - it is short
    monkeypatch.setattr(made, "_array", split)
    first, second = rows("ab")
    parts = [(part, array.to_pylist()) for part, array in made.write([first, second], ["x", "y"])]
    assert parts == [([first], ["x"]), ([second], ["y"])]
