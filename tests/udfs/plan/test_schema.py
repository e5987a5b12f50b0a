"""Checks of types, columns and intervals. Tests of DDL strings need a JVM and are in tests/real/spark."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import types as T  # noqa: N812 - the usual name

from udfs._plan.schema import (
    check_columns,
    check_event_time_type,
    check_key_type,
    check_time_zone,
    lookup_names,
    microseconds,
    new_columns,
    parse_type,
)

FLIGHTS = ["origin", "dest", "Time_Hour"]


def new(*names: str) -> list[tuple[str, str]]:
    """New columns of the schema."""
    return [(name, "") for name in names]


def test_a_spark_type_is_returned_unchanged() -> None:
    assert parse_type(T.LongType()) == T.LongType()


@pytest.mark.parametrize("declared", [None, 7, int, T.LongType], ids=str)
def test_a_value_that_is_not_a_type_is_refused(declared: Any) -> None:
    with pytest.raises(TypeError, match=r"the type must be a Spark type or its DDL string, such as .*; got"):
        parse_type(declared)


@pytest.mark.parametrize("declared", [T.LongType(), T.StructType([])], ids=str)
def test_a_schema_without_columns_is_refused(declared: T.DataType) -> None:
    with pytest.raises(TypeError, match="the schema must give each new column a name and a type, such as"):
        new_columns(declared)


def test_new_columns_are_nullable_and_nested_fields_are_unchanged() -> None:
    inner = T.StructType([T.StructField("y", T.LongType(), nullable=False)])
    declared = T.StructType([T.StructField("x", inner, nullable=False, metadata={"comment": "a point"})])
    expected = T.StructType([T.StructField("x", inner, nullable=True, metadata={"comment": "a point"})])
    assert new_columns(declared) == expected


def test_existing_inputs_and_new_additions_are_accepted() -> None:
    check_columns(FLIGHTS, new("temp", "wind"), ["origin", "Time_Hour"], case=True)


@pytest.mark.parametrize(
    ("inputs", "added", "case", "message"),
    [
        (["orgin"], ["temp"], False, r"no such column: 'orgin' \(columns: origin, .*; did you mean 'origin'\?$"),
        (["timehour"], ["temp"], False, r"no such column: 'timehour' .*; did you mean 'Time_Hour'\?$"),
        (["x"], ["temp"], False, r"no such column: 'x' \(columns: origin, dest, Time_Hour\)$"),
        (["origin"], ["temp", "dest"], True, "there is a column 'dest' already"),
        (["ORIGIN"], ["temp"], True, "no such column: 'ORIGIN'"),
        (["origin"], ["time_hour"], False, "there is a column 'time_hour' already"),
        (["origin"], ["temp", "temp"], True, r"two new columns have the same name \(temp, temp\): rename one$"),
        (["origin"], ["temp", "TEMP"], False, r"two new columns have the same name \(temp, TEMP\): rename one$"),
    ],
    ids=str,
)
def test_a_column_that_is_missing_or_exists_already_is_named(
    inputs: list[str], added: list[str], case: bool, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        check_columns(FLIGHTS, new(*added), inputs, case=case)


@pytest.mark.parametrize(
    ("inputs", "added", "case"), [(["ORIGIN"], ["temp"], False), (["origin"], ["time_hour"], True)]
)
def test_names_are_case_sensitive_only_if_the_session_is(inputs: list[str], added: list[str], case: bool) -> None:
    check_columns(FLIGHTS, new(*added), inputs, case=case)


@pytest.mark.parametrize(("name", "hint"), [("nme", r"; did you mean 'name'\?: rename"), ("x", r"\): rename")])
def test_a_parameter_that_is_no_column_is_named(name: str, hint: str) -> None:
    message = (
        rf"^look_up has a parameter '{name}', but there is no such column \(columns: name.*{hint} the parameter, or "
    )
    with pytest.raises(ValueError, match=message + r"give inputs=\[\.\.\.\]$"):
        check_columns(["name"], new("temp"), [name], case=False, function="look_up")


def test_an_existing_addition_with_an_option_of_its_own_names_the_option() -> None:
    message = (
        r"^there is a column 'error' already: give the new one another name with error=\"\.\.\.\", or drop the old"
    )
    with pytest.raises(ValueError, match=message):
        check_columns(["id", "Error"], [("temp", ""), ("error", "error")], ["id"], case=False)


def test_an_ambiguous_input_is_refused() -> None:
    with pytest.raises(ValueError, match="there are several columns 'ID': rename them first"):
        check_columns(["id", "Id"], new("temp"), ["ID"], case=False)


@pytest.mark.parametrize(("existing", "case"), [(["a", "b", "b"], True), (["a", "b", "B"], False)])
def test_ambiguous_columns_are_accepted_if_they_are_not_inputs(existing: list[str], case: bool) -> None:
    check_columns(existing, new("temp"), ["a"], case=case)


@pytest.mark.parametrize("names", [["id", "text_2", "Größe"], ["_0", "_1"]])
def test_columns_that_spark_can_look_up_have_their_own_names(names: list[str]) -> None:
    assert lookup_names(names, ["__hash", "temp"]) == names


@pytest.mark.parametrize("name", ["a.b", "a`b", "a b", "", "*", "ID", "id", "__HASH"])
def test_columns_are_numbered_if_spark_cannot_look_one_up(name: str) -> None:
    assert lookup_names(["id", name], ["__hash"]) == ["_0", "_1"]


def test_numbers_of_columns_leave_out_those_that_a_new_column_has() -> None:
    assert lookup_names(["a.b", "a.b"], ["__hash", "_0"]) == ["_1", "_2"]


def test_a_column_is_found_by_name() -> None:
    assert check_columns(FLIGHTS, [], ["time_hour"], case=False) == {"time_hour": 2}
    assert check_columns(FLIGHTS, [], ["Time_Hour"], case=True) == {"Time_Hour": 2}


SCHEMA = T.StructType(
    [
        T.StructField("instant", T.TimestampType()),
        T.StructField("wall", T.TimestampNTZType()),
        T.StructField("day", T.DateType()),
        T.StructField("number", T.LongType()),
    ]
)


@pytest.mark.parametrize("position", [0, 1])
def test_both_kinds_of_timestamp_are_event_times(position: int) -> None:
    check_event_time_type(SCHEMA[position])


@pytest.mark.parametrize("position", [2, 3])
def test_other_types_are_not_event_times(position: int) -> None:
    name, kind = SCHEMA.names[position], SCHEMA[position].dataType.simpleString()
    with pytest.raises(
        TypeError, match=f"event_time must be a timestamp column, and '{name}' is {kind}: cast it first"
    ):
        check_event_time_type(SCHEMA[position])


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        ("10 seconds", 10_000_000),
        ("0 seconds", 0),
        ("250 milliseconds", 250_000),
        ("1 hour 30 minutes", 5_400_000_000),
        ("1.5 hours", 5_400_000_000),
        ("2 days", 172_800_000_000),
        ("INTERVAL 10 SECONDS", 10_000_000),
        ("  interval   2  hours  ", 7_200_000_000),
        ("10seconds", 10_000_000),
    ],
)
def test_an_interval_is_read_as_spark_reads_it(interval: str, expected: int) -> None:
    assert microseconds(interval) == expected


@pytest.mark.parametrize(
    "interval", ["", "soon", "10", "seconds", "-10 seconds", "10 seconds ago", "1 hour, 2 minutes", "1 month"]
)
def test_invalid_intervals_are_refused(interval: str) -> None:
    with pytest.raises(
        ValueError,
        match=r'max_out_of_orderness must be an interval such as "10 seconds", with microseconds, .* or weeks, got',
    ):
        microseconds(interval)


@pytest.mark.parametrize("interval", [10, 10.0, None, b"10 seconds"])
def test_an_interval_must_be_a_string(interval: Any) -> None:
    with pytest.raises(TypeError, match="max_out_of_orderness must be an interval"):
        microseconds(interval)


TIMESTAMPS = [
    T.TimestampType(),
    T.ArrayType(T.TimestampType()),
    T.MapType(T.StringType(), T.TimestampType()),
    T.StructType([T.StructField("at", T.TimestampType())]),
]


@pytest.mark.parametrize("kind", TIMESTAMPS, ids=str)
def test_timestamps_in_a_time_zone_that_python_lacks_are_refused(kind: T.DataType) -> None:
    with pytest.raises(ValueError, match="Python has no time zone 'PST'"):
        check_time_zone("PST", kind)
    check_time_zone("GMT+2", kind)


@pytest.mark.parametrize("kind", [T.StringType(), T.TimestampNTZType(), T.ArrayType(T.DateType())], ids=str)
def test_the_time_zone_does_not_matter_without_timestamps(kind: T.DataType) -> None:
    check_time_zone("PST", kind)


class CaseInsensitive(T.StringType):
    """A string with a collation. Spark 3.5 has none."""

    def __init__(self) -> None:
        self.collation = "UTF8_LCASE"

    def simpleString(self) -> str:  # noqa: N802 - Spark's name
        return f"string collate {self.collation}"


def test_a_key_that_is_not_compared_by_its_bytes_is_refused() -> None:
    """Rows whose keys are equal in SQL would be called at the same time."""
    with pytest.raises(TypeError, match="key compares strings by their bytes, and 'account' is string collate UTF8_LC"):
        check_key_type(T.StructField("account", CaseInsensitive()))
    check_key_type(T.StructField("account", T.StringType()))
