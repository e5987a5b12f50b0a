"""Reading: rows, their input values, event times and keys."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from traceback import format_exception
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from pyspark.sql import types as T  # noqa: N812 - the usual name

from udfs._sent.arrow_types import arrow_type
from udfs._spark_thread.reading import rows_of, set_event_times, set_keys
from udfs._spark_thread.writing import ResultWriter

NEW_YORK = ZoneInfo("America/New_York")
NOON = datetime(2013, 7, 1, 12, tzinfo=NEW_YORK)


def inputs(column: pa.Array) -> list[Any]:
    return [row.inputs[0] for row in rows_of([column], 0)]


def test_a_row_has_one_value_per_column_and_its_position() -> None:
    first, second = rows_of([pa.array([1, 2]), pa.array(["a", None])], 7)
    assert (first.inputs, first.batch, first.index, first.event_time) == ((1, "a"), 7, 0, None)
    assert (second.inputs, second.batch, second.index) == ((2, None), 7, 1)


@pytest.mark.parametrize("show_values", [True, False])
def test_each_call_owns_its_lists_and_dicts(show_values: bool) -> None:
    value = {"tags": [["a"], None], "by": {"k": [1]}}
    kind = pa.struct([("tags", pa.list_(pa.list_(pa.string()))), ("by", pa.map_(pa.string(), pa.list_(pa.int64())))])
    columns = [pa.array([value], kind), pa.array([[1.5]]), pa.array(["flat"])]
    [row] = rows_of(columns, 0, show_values=show_values)
    changed, numbers, _ = row.own_inputs()
    changed["tags"][0].append("b")
    changed["by"]["k"].append(2)
    changed["new"] = numbers.pop()
    assert row.inputs == row.own_inputs() == (value, [1.5], "flat")
    assert ("1.5" in repr(row)) is show_values


def test_a_row_without_nested_inputs_keeps_its_tuple() -> None:
    [row] = rows_of([pa.array(["EWR"]), pa.array([b"x"])], 0)
    assert row.own_inputs() is row.inputs


def test_the_repr_of_a_row_shortens_long_values() -> None:
    """Every error message contains it."""
    [row] = rows_of([pa.array(["x" * 100_000]), pa.array([1])], 0)
    assert len(repr(row)) < 300
    assert repr(row).startswith("row ('xxx")


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        rows_of([pa.array([1, 2]), pa.array([1])], 0)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.string(), "Zürich"),
        (pa.bool_(), True),
        (pa.int8(), -1),
        (pa.int64(), 2**63 - 1),
        (pa.float32(), 0.5),
        (pa.decimal128(38, 18), Decimal("1.500000000000000000")),
        (pa.binary(), b"\x00"),
        (pa.date32(), date(1582, 10, 4)),
        (pa.timestamp("us"), datetime(2013, 7, 1, 12, 0, 0, 1)),
        (pa.duration("us"), timedelta(microseconds=-1)),
        (pa.list_(pa.int32()), [1, None]),
        (pa.struct([("x", pa.float64()), ("y", pa.list_(pa.string()))]), {"x": None, "y": ["a"]}),
        (pa.map_(pa.string(), pa.int64()), {"a": 1, "b": None}),
        (pa.list_(pa.map_(pa.string(), pa.map_(pa.int32(), pa.int32()))), [{"a": {1: 2}}, {}]),
        (pa.struct([("m", pa.map_(pa.string(), pa.int64()))]), {"m": {"a": 1}}),
    ],
    ids=str,
)
def test_values_are_plain_python_and_a_null_is_none(kind: pa.DataType, value: Any) -> None:
    [found, null] = inputs(pa.array([value, None], kind))
    assert found == value
    assert type(found) is type(value)
    assert null is None


def test_a_timestamp_has_the_session_time_zone() -> None:
    """Spark sends timestamps with the session's time zone."""
    [found] = inputs(pa.array([NOON], pa.timestamp("us", "America/New_York")))
    assert found == NOON
    assert (found.hour, found.utcoffset()) == (12, timedelta(hours=-4))


def test_timestamps_at_any_depth_may_be_in_a_zone_that_only_spark_knows() -> None:
    """Nulls in a field that is declared NOT NULL are below a null struct, as Spark sends them."""
    times = pa.array([0, None], pa.timestamp("us", tz="GMT+2"))
    field = pa.field("at", times.type, nullable=False)
    at = datetime(1970, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))
    assert inputs(times) == [at, None]
    structs = pa.StructArray.from_arrays([times], fields=[field], mask=pa.array([False, True]))
    assert inputs(structs) == [{"at": at}, None]
    assert inputs(pa.ListArray.from_arrays([0, 1, 2], times)) == [[at], [None]]
    assert inputs(pa.MapArray.from_arrays([0, 1, 2], ["a", "b"], times)) == [{"a": at}, {"b": None}]


def test_a_timestamp_may_come_in_another_time_zone_than_that_of_the_rows() -> None:
    """At any depth. A `timestamp_ntz` has none, and stays naive."""
    structs = pa.StructArray.from_arrays(
        [pa.array([NOON], pa.timestamp("us", "Asia/Tokyo")), pa.array([datetime(2013, 7, 1, 12)], pa.timestamp("us"))],
        names=["at", "wall"],
    )
    [row] = rows_of([pa.ListArray.from_arrays([0, 1], structs)], 0, zone="America/New_York")
    [[found]] = row.inputs
    assert (found["at"], found["at"].utcoffset()) == (NOON, timedelta(hours=-4))
    assert found["wall"] == datetime(2013, 7, 1, 12)


def test_nan_is_not_none() -> None:
    nan, null = inputs(pa.array([math.nan, None], pa.float64(), from_pandas=False))
    assert math.isnan(nan)
    assert null is None


@pytest.mark.parametrize(
    "column",
    [
        pa.array([NOON], pa.timestamp("us", "America/New_York")),
        pa.array([NOON], pa.timestamp("us", "UTC")),
        pa.array([NOON], pa.timestamp("ns", "UTC")),
    ],
    ids=lambda column: str(column.type),
)
def test_an_event_time_is_in_microseconds_since_the_epoch(column: pa.Array) -> None:
    assert times_of(column) == [round(NOON.timestamp() * 1e6)]


def test_a_naive_event_time_is_not_shifted() -> None:
    epoch = datetime(1970, 1, 1, tzinfo=UTC).replace(tzinfo=None)
    column = pa.array([epoch, None, epoch - timedelta(microseconds=1)], pa.timestamp("us"))
    assert times_of(column) == [0, None, -1]


def times_of(column: pa.Array) -> list[int | None]:
    rows = rows_of([column], 0)
    set_event_times(rows, column)
    return [row.event_time for row in rows]


def test_a_key_is_a_tuple_of_values_in_which_all_nan_are_equal() -> None:
    rows = rows_of([pa.array("abcd")], 0)
    set_keys(rows, [pa.array([math.nan, math.nan, None, 0.0], from_pandas=False), pa.array([1, 1, 1, None])])
    nan, other_nan, null, zero = (row.key for row in rows)
    assert nan == other_nan
    assert (null, zero) == ((None, 1), (0.0, None))
    assert len({nan, other_nan, null, zero}) == 3


DETAILED = T.StructType(
    [
        T.StructField("text", T.StringType()),
        T.StructField("number", T.DecimalType(10, 3)),
        T.StructField("at", T.TimestampType()),
        T.StructField("tags", T.ArrayType(T.MapType(T.StringType(), T.DateType()))),
        T.StructField(
            "inner", T.StructType([T.StructField("ratio", T.FloatType()), T.StructField("raw", T.BinaryType())])
        ),
    ]
)


async def identity(value: Any) -> Any:
    return value


def test_an_identity_function_preserves_nested_values_and_nulls(settings: Any) -> None:
    """Nested values, with nulls at every depth."""
    full = {
        "text": "a",
        "number": Decimal("1.250"),
        "at": NOON,
        "tags": [[("x", date(2013, 7, 1)), ("y", None)], None, []],
        "inner": {"ratio": 0.5, "raw": b"\xff"},
    }
    hollow = dict.fromkeys(full)
    values = [full, None, hollow, full | {"inner": {"ratio": None, "raw": None}}]
    column = pa.array(values, arrow_type(DETAILED))
    rows = rows_of([column], 0)
    writer = ResultWriter(DETAILED, "UTC", settings(identity))
    [(_, array)] = writer.write(rows, [row.inputs[0] for row in rows])
    assert array.equals(column)


YEAR_10000 = 253_402_300_800_000_000  # microseconds


def test_a_value_that_python_cannot_represent_fails_only_its_row() -> None:
    pairs = pa.map_(pa.struct([("x", pa.int64())]), pa.int64())
    keyed = pa.array([[], [({"x": 1}, 1)], None, []], pairs)
    times = pa.array([0, 0, 0, YEAR_10000], pa.timestamp("us"))
    rows = rows_of([keyed, times], 0, on_error="column")
    messages = [row.failure and str(row.failure.exception) for row in rows]
    assert [message is None for message in messages] == [True, False, True, False]
    assert (
        "the value of input 1, map<struct<x: int64>, int64>, cannot be represented in Python: unhashable" in messages[1]
    )
    assert "the value of input 2, timestamp[us], cannot be represented in Python" in messages[3]
    assert [row.inputs for row in rows[:3]] == [
        ({}, datetime(1970, 1, 1)),
        (None, datetime(1970, 1, 1)),
        (None, datetime(1970, 1, 1)),
    ]


def test_a_value_that_python_cannot_represent_is_raised_with_its_row_if_on_error_is_raise() -> None:
    with pytest.raises(ValueError, match=r"input 1, timestamp\[us\], cannot be represented in Python") as caught:
        rows_of([pa.array([YEAR_10000], pa.timestamp("us")), pa.array(["a"])], 0)
    assert caught.value.__notes__ == ["row (None, 'a')"]


def test_a_key_may_be_a_time_that_python_cannot_represent() -> None:
    rows = rows_of([pa.array("abc")], 0)
    times = pa.array([YEAR_10000, YEAR_10000 + 1, YEAR_10000], pa.timestamp("us", "UTC"))
    set_keys(rows, [times, pa.array([10**7] * 3, pa.int32()).view(pa.date32())])
    first, second, third = (row.key for row in rows)
    assert first == third != second


def test_the_bytes_of_a_batch_are_divided_evenly_among_its_rows() -> None:
    column = pa.array([0, 0], pa.int64())
    assert [row.nbytes for row in rows_of([column, column], 0)] == [16, 16]
    assert [row.nbytes for row in rows_of([column], 0, nbytes=100)] == [50, 50]
    assert rows_of([column.slice(0, 0)], 0, nbytes=0) == []


@pytest.mark.parametrize("on_error", ["raise", "null"])
def test_a_secret_row_hides_the_value_that_python_cannot_represent(on_error: str) -> None:
    twice = pa.array([[("4111-1111", 1), ("4111-1111", 2)]], pa.map_(pa.string(), pa.int64()))
    try:
        [row] = rows_of([twice], 0, show_values=False, on_error=on_error)
        assert row.failure is not None
        error: Exception = row.failure.exception
    except ValueError as raised:
        error = raised
    assert "the value of input 1, map<string, int64>, cannot be represented in Python" in str(error)
    assert "4111" not in "".join(format_exception(error))
