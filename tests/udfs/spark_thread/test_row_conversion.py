"""Enrichment of record batches, without a JVM."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from pyspark.sql import types as T  # noqa: N812 - the usual name

import udfs._spark_thread.batches
from udfs._sent.settings import Enrichment
from udfs._spark_thread.batches import ranges
from udfs._spark_thread.conversion import RowConversion
from udfs._spark_thread.misfits import ResultTypeError

DOUBLE = T.StructType([T.StructField("temp", T.DoubleType())])
TWO = T.StructType([T.StructField("temp", T.DoubleType()), T.StructField("wind", T.LongType())])


@dataclass
class Observation:
    temp: float


class Named(NamedTuple):
    temp: float


def batch(*numbers: Any, **more: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"n": pa.array(numbers, pa.int64()), **more})


@pytest.fixture
def run(settings: Any) -> Any:
    """Enriches batches; the function is called with their first column."""

    def enriched(
        function: Any, batches: Any, *, added: T.StructType = DOUBLE, flatten: bool = False, **more: Any
    ) -> Any:
        event_time = 1 if "delay" in more else None
        key = (0,) if more.get("mode") == "keyed" else ()
        enrichment = Enrichment(
            settings(function, **more), added, "UTC", inputs=(0,), event_time=event_time, key=key, flatten=flatten
        )
        return RowConversion(enrichment).run(batches)

    return enriched


def rows_of(batches: Any) -> list[dict[str, Any]]:
    return [row for each in batches for row in each.to_pylist()]


async def halve(value: int) -> float:
    return value / 2


async def repeat(value: int) -> list[float]:
    return [float(value)] * value


def test_new_columns_follow_the_old_ones(run: Any) -> None:
    [out] = run(halve, [batch(1, 2, text=["a", "b"])])
    assert out.schema.names == ["n", "text", "temp"]
    assert out.to_pylist() == [{"n": 1, "text": "a", "temp": 0.5}, {"n": 2, "text": "b", "temp": 1.0}]


def test_a_column_that_is_not_null_stays_so(run: Any) -> None:
    """Spark compares nullability if it is configured to validate the schema of Arrow data."""
    schema = pa.schema([pa.field("n", pa.int64(), nullable=False), pa.field("text", pa.string())])
    rows = pa.RecordBatch.from_arrays([pa.array([1]), pa.array(["a"])], schema=schema)
    [out] = run(halve, [rows])
    assert [field.nullable for field in out.schema] == [False, True, True]


@pytest.mark.parametrize("mode", ["ordered", "unordered"])
def test_each_result_is_written_to_its_own_row(run: Any, mode: str) -> None:
    batches = [
        batch(*range(start, start + 7), text=[f"row {n}" for n in range(start, start + 7)])
        for start in range(0, 700, 7)
    ]
    out = rows_of(run(halve, batches, mode=mode))
    assert sorted(row["n"] for row in out) == list(range(700))
    assert all(row["text"] == f"row {row['n']}" and row["temp"] == row["n"] / 2 for row in out)


def test_no_rows_produce_no_batches(run: Any) -> None:
    assert list(run(halve, [])) == []
    assert list(run(halve, [batch(), batch()])) == []


@pytest.mark.parametrize("result", [{"temp": 1.5, "wind": 2}, (1.5, 2)], ids=str)
def test_several_new_columns_are_returned_as_a_mapping_or_a_tuple(run: Any, result: Any) -> None:
    async def call(value: int) -> Any:
        return result if value else None

    assert rows_of(run(call, [batch(0, 1)], added=TWO)) == [
        {"n": 0, "temp": None, "wind": None},
        {"n": 1, "temp": 1.5, "wind": 2},
    ]


@pytest.mark.parametrize("result", [1.5, {"temp": 1.5}, Observation(1.5), Named(1.5)], ids=str)
def test_a_single_new_column_is_returned_as_its_value_or_by_name(run: Any, result: Any) -> None:
    async def call(value: int) -> Any:
        return result

    assert rows_of(run(call, [batch(1)])) == [{"n": 1, "temp": 1.5}]


def single(kind: T.DataType) -> T.StructType:
    return T.StructType([T.StructField("temp", kind)])


Wrapped = namedtuple("Wrapped", "temp")  # noqa: PYI024 - untyped named tuples are accepted, too


@pytest.mark.parametrize(
    ("kind", "result", "expected"),
    [
        (T.MapType(T.StringType(), T.LongType()), {"temp": 1}, [("temp", 1)]),
        (T.ArrayType(T.LongType()), (7,), [7]),
        (T.ArrayType(T.LongType()), Wrapped([7]), [7]),
        (DOUBLE, {"temp": 1.5}, {"temp": 1.5}),
        (TWO, {"temp": 1.5, "wind": 2}, {"temp": 1.5, "wind": 2}),
        (TWO, {"temp": {"temp": 1.5, "wind": 2}}, {"temp": 1.5, "wind": 2}),
    ],
    ids=str,
)
def test_a_nested_value_of_a_single_new_column_is_not_unwrapped_by_mistake(
    run: Any, kind: T.DataType, result: Any, expected: Any
) -> None:
    async def call(value: int) -> Any:
        return result

    assert rows_of(run(call, [batch(1)], added=single(kind))) == [{"n": 1, "temp": expected}]


def test_flatten_repeats_a_row_once_per_result(run: Any) -> None:
    out = rows_of(run(repeat, [batch(2, 0, 1), batch(0), batch(3)], flatten=True))
    assert [(row["n"], row["temp"]) for row in out] == [(2, 2.0), (2, 2.0), (1, 1.0), (3, 3.0), (3, 3.0), (3, 3.0)]


def test_outer_flatten_keeps_a_row_without_outputs_with_null(run: Any) -> None:
    out = rows_of(run(repeat, [batch(0, 2), batch(0)], flatten="outer"))
    assert [(row["n"], row["temp"]) for row in out] == [(0, None), (2, 2.0), (2, 2.0), (0, None)]


@pytest.mark.parametrize(("flatten", "expected"), [(False, [1, 2]), (True, [2]), ("outer", [1, 2])], ids=str)
def test_a_skipped_row_is_null_or_has_no_outputs(run: Any, flatten: Any, expected: list[int]) -> None:
    async def of_text(text: str) -> Any:
        assert text is not None
        return [7.0] if flatten else 7.0

    text = pa.record_batch({"text": [None, "a"], "n": [1, 2]})
    out = rows_of(run(of_text, [text], flatten=flatten, skip_nulls=True))
    assert [row["n"] for row in out] == expected
    assert [row["temp"] for row in out] == [None, 7.0][-len(expected) :]


def test_a_skipped_row_has_no_error_and_no_attempts(run: Any) -> None:
    [row] = rows_of(run(halve, [batch(None)], skip_nulls=True, on_error="column", metadata="how"))
    assert row["error"] is None
    assert (row["how"]["attempts"], row["how"]["seconds"], row["how"]["error"]) == (0, 0.0, None)


def test_rows_without_outputs_produce_no_empty_batch(run: Any) -> None:
    assert list(run(repeat, [batch(0, 0), batch(0)], flatten=True)) == []


@pytest.mark.parametrize("shape", [list, tuple, iter], ids=lambda shape: shape.__name__)
def test_flatten_accepts_any_iterable(run: Any, shape: Any) -> None:
    async def call(value: int) -> Any:
        return shape([{"temp": 1.5, "wind": 2}, None])

    out = rows_of(run(call, [batch(1)], added=TWO, flatten=True))
    assert [(row["temp"], row["wind"]) for row in out] == [(1.5, 2), (None, None)]


NOT_LISTS = [5, "abc", b"abc", {"temp": 1.5}, None]


@pytest.mark.parametrize("result", NOT_LISTS, ids=str)
def test_a_result_that_is_not_a_list_is_an_error_that_names_the_row(run: Any, result: Any) -> None:
    async def call(value: int) -> Any:
        return result

    with pytest.raises(
        ResultTypeError,
        match=r"call returned \w+ for row \(1\), and with flatten=True a result is a list of outputs: return a list",
    ):
        rows_of(run(call, [batch(1)], flatten=True))


def test_an_async_iterator_is_an_error_that_says_how_to_make_a_list_of_it(run: Any) -> None:
    async def pages(value: int) -> AsyncIterator[float]:
        yield 1.0

    async def call(value: int) -> Any:
        return pages(value)

    with pytest.raises(ResultTypeError, match=r"return a list, such as \[each async for each in \.\.\.\]$"):
        rows_of(run(call, [batch(1)], flatten=True))


@pytest.mark.parametrize("on_error", ["null", "column"])
def test_a_row_that_cannot_be_flattened_comes_out_once_and_does_not_affect_other_rows(run: Any, on_error: str) -> None:
    async def call(value: int) -> Any:
        if value == 1:
            raise ValueError("one is too few")
        return 5 if value == 2 else [1.0] * value

    out = rows_of(run(call, [batch(0, 1, 2, 3)], flatten=True, on_error=on_error))
    assert [(row["n"], row["temp"]) for row in out] == [(1, None), (2, None), *[(3, 1.0)] * 3]
    if on_error == "column":
        assert [row["error"] and row["error"]["type"] for row in out] == ["ValueError", "ResultTypeError", *[None] * 3]


@pytest.mark.parametrize("on_error", ["null", "column"])
def test_an_iterable_that_raises_fails_only_its_row(run: Any, on_error: str) -> None:
    async def call(value: int) -> Any:
        return (1.0 / number for number in (1, value))

    out = rows_of(run(call, [batch(1, 0, 2)], flatten=True, on_error=on_error))
    assert [(row["n"], row["temp"]) for row in out] == [(1, 1.0), (1, 1.0), (0, None), (2, 1.0), (2, 0.5)]


def test_a_misfit_does_not_affect_the_other_outputs_of_its_row(run: Any) -> None:
    async def call(value: int) -> list[Any]:
        return [1.0, "two", 3.0]

    out = rows_of(run(call, [batch(1)], flatten=True, on_error="column"))
    assert [row["temp"] for row in out] == [1.0, None, 3.0]
    assert [row["error"] is None for row in out] == [True, False, True]


def test_the_error_column_is_the_last(run: Any) -> None:
    async def call(value: int) -> float:
        return 1 / value

    out = list(run(call, [batch(0, 1)], on_error="column"))  # one batch, or two if the loop is slow
    assert {tuple(each.schema.names) for each in out} == {("n", "temp", "error")}
    failed, good = rows_of(out)
    assert good == {"n": 1, "temp": 1.0, "error": None}
    assert (failed["temp"], failed["error"]["type"], failed["error"]["message"]) == (
        None,
        "ZeroDivisionError",
        "division by zero",
    )


def test_a_misfit_fails_the_task_and_cancels_its_calls(run: Any, tasks_of_the_loop: Any) -> None:
    async def call(value: int) -> Any:
        return "one" if value == 1 else 0.5

    with pytest.raises(
        ResultTypeError, match=r"call returned str 'one' for row \(1\), but column '\w+' is declared double: "
    ):
        rows_of(run(call, [batch(0, 1, 2)]))
    assert tasks_of_the_loop() == []


def test_with_event_time_each_row_comes_out_with_its_columns(run: Any) -> None:
    times = pa.array([0, 60_000_000, None, 30_000_000], pa.timestamp("us"))
    out = rows_of(run(halve, [batch(1, 2, 3, 4, ts=times)] * 3, mode="unordered", delay=10_000_000))
    assert sorted((row["n"], row["temp"]) for row in out) == sorted([(1, 0.5), (2, 1.0), (3, 1.5), (4, 2.0)] * 3)
    assert all(row["ts"] == times[row["n"] - 1].as_py() for row in out)


@pytest.mark.parametrize("flatten", [False, True])
def test_large_rows_are_divided_into_several_batches_with_their_own_results(
    run: Any, monkeypatch: pytest.MonkeyPatch, flatten: bool
) -> None:
    """Large input rows, large results, and small rows with many outputs."""
    monkeypatch.setattr(udfs._spark_thread.batches, "SLICE_BYTES", 3_000)
    monkeypatch.setattr(udfs._spark_thread.batches, "SAFE_BYTES", 0)
    monkeypatch.setattr(udfs._spark_thread.batches, "ranges", partial(ranges, limit=2_500))
    added = T.StructType([T.StructField("a", T.StringType()), T.StructField("n2", T.LongType())])

    async def call(value: int) -> Any:
        result = {"a": str(value) * 1_000, "n2": "misfit" if value == 3 else value}
        return [result] * (value % 3) if flatten else result

    batches = list(
        run(
            call,
            [batch(*range(8), text=[str(n) * 1_000 for n in range(8)])],
            added=added,
            flatten=flatten,
            on_error="null",
        )
    )
    assert max(each.num_rows for each in batches) <= 2
    expected = [n for n in range(8) for _ in range(n % 3 if flatten else 1)]
    rows = rows_of(batches)
    assert [row["n"] for row in rows] == expected
    assert [row["n2"] for row in rows] == [None if n == 3 else n for n in expected]
    assert all(row["text"] == str(row["n"]) * 1_000 for row in rows)


def test_a_row_whose_input_python_cannot_represent_is_not_called_and_stays_in_order(run: Any) -> None:
    calls: list[Any] = []

    async def call(value: Any) -> float:
        calls.append(value)
        return 0.5

    times = pa.array([0, 253_402_300_800_000_000, 0], pa.timestamp("us"))
    batches = [pa.RecordBatch.from_pydict({"at": times, "n": [1, 2, 3]})]
    out = rows_of(each.drop_columns("at") for each in run(call, batches, on_error="column"))
    assert [(row["n"], row["temp"]) for row in out] == [(1, 0.5), (2, None), (3, 0.5)]
    assert len(calls) == 2
    assert (out[1]["error"]["type"], out[1]["error"]["attempts"]) == ("ValueError", 0)
