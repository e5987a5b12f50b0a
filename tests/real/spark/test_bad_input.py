"""Bad arguments are refused by name when the plan is built, before any call."""

from __future__ import annotations

import math
import re
import threading
from functools import partial
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from tests.support import thorough_except
from udfs import async_pandas_udf, ordered_wait, unordered_wait

BOTH = [ordered_wait, unordered_wait]
WAITS = pytest.mark.parametrize("wait", thorough_except([unordered_wait], BOTH), ids=lambda wait: wait.__name__)


async def look_up(origin: str) -> float:
    raise AssertionError("this must not be called")


async def by_name(name: str) -> float:
    raise AssertionError("this must not be called")


async def in_currency(currency: str, day: str) -> float:
    raise AssertionError("this must not be called")


class Opens:
    def open(self) -> None:
        raise AssertionError("this must not be called")

    async def invoke(self, origin: str) -> float:
        raise AssertionError("this must not be called")


@pytest.fixture
def flights(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([("EWR", 5, "2013-01-01")], "origin string, Hour int, day string")


COLUMNS = {
    "an input that does not exist": ({"inputs": ["orgin"]}, "no such column: 'orgin' \\(columns: origin, Hour, day"),
    "a new column that exists": ({"schema": "day double"}, "there is a column 'day' already"),
    "one that exists in another case": ({"schema": "HOUR double"}, "there is a column 'HOUR' already"),
    "a column named twice": ({"schema": "a double, A int"}, r"two new columns have the same name \(a, A\)"),
    "an error column that exists": (
        {"schema": "error int", "on_error": "column"},
        "two new columns have the same name",
    ),
    "an error column that exists already": (
        {"on_error": "column", "error": "DAY"},
        r"there is a column 'DAY' already: give the new one another name with error=\"\.\.\.\", or drop",
    ),
    "a name for errors without their column": ({"error": "why"}, "error='why' names the column of on_error=\"column\""),
    "both capacities": ({"capacity": 9, "cluster_capacity": 9}, "capacity=9 and cluster_capacity=9 exclude each other"),
    "a parameter that is no column": (
        {"function": by_name},
        (
            r"by_name has a parameter 'name', but there is no such column \(columns: origin, Hour, day.*\): rename the "
            r"parameter, or give inputs=\[\.\.\.\]"
        ),
    ),
    "a schema of a name without a type": (
        {"schema": "name"},
        r"^the schema must give each new column a name and a type, such as \"temp double, wind double\"; got 'name' \(",
    ),
    "no capacity": ({"capacity": 0}, "capacity must be at least 1, got 0"),
    "a buffer below the capacity": ({"capacity": 9, "buffer": 8}, "buffer must be at least the capacity, 9, got 8"),
    "a negative timeout": ({"timeout": -1.0}, r"timeout must be seconds, not negative .* got -1\.0"),
    "a timeout that is not a number": ({"timeout": math.nan}, r"timeout must be seconds, .* not NaN .* got nan"),
    "an unknown error mode": ({"on_error": "skip"}, 'on_error must be "raise", "null" or "column", got \'skip\''),
    "a cluster capacity below the number of tasks": (
        {"cluster_capacity": 1},
        "cluster_capacity must be at least .* 2, .* got 1",
    ),
    "a flatten of another join": ({"flatten": "left"}, "flatten must be True, False or \"outer\", got 'left'"),
}
TYPES = {
    "inputs that are not a list": (
        {"inputs": "origin"},
        "inputs must be a list of one or more names of columns, got 'origin'",
    ),
    "inputs that are not names": ({"inputs": [F.lit]}, "inputs must be a list of one or more names of columns"),
    "more inputs than parameters": (
        {"inputs": ["origin", "day"], "on_error": "null"},
        r"look_up takes \(origin\), got 2 columns \(origin, day\): give one column for each parameter",
    ),
    "more inputs than parameters of a group": ({"inputs": ["origin", "day"], "group": 2}, r"look_up takes \(origin\)"),
    "no inputs": ({"inputs": []}, r"inputs must be a list of one or more names of columns, got \[\]"),
    "a schema without names": ({"schema": "double"}, "the schema must give each new column a name .* got 'double'"),
    "a schema that is a class": ({"schema": float}, "the schema must give each new column .*; got <class 'float'>"),
    "a blocking function": ({"function": len, "inputs": ["origin"]}, "must be async, got len.*in_thread"),
    "an open that is not async": (
        {"function": Opens()},
        r"open\(\) of Opens must be async: declare it with `async def",
    ),
    "a partial that binds the first parameter by keyword": (
        {"function": partial(in_currency, currency="EUR"), "inputs": ["day"]},
        "in_currency takes day by keyword, and columns .* a partial must bind by position what is in front of day",
    ),
    "a timeout of None": ({"timeout": None}, "timeout must be seconds as a number"),
    "a retry that is a number": ({"retry": 3}, r"retry must be a RetryStrategy such as FixedDelay\(3, 1.0\), got 3"),
    "an unknown keyword": ({"capasity": 9}, "unexpected keyword argument 'capasity'"),
    "a keyword of the operator": ({"mode": "unordered"}, "unexpected keyword argument 'mode'"),
}


def build(wait: Any, df: DataFrame, *, function: Any = look_up, schema: Any = "temp double", **more: Any) -> Any:
    return wait(df, function, schema, **({"timeout": 5.0} | more))


@WAITS
@pytest.mark.parametrize("what", COLUMNS)
def test_a_bad_value_is_refused_by_name(flights: DataFrame, wait: Any, what: str) -> None:
    arguments, message = COLUMNS[what]
    with pytest.raises(ValueError, match=message):
        build(wait, flights, **arguments)


@WAITS
@pytest.mark.parametrize("what", TYPES)
def test_a_value_of_the_wrong_type_is_refused_by_name(flights: DataFrame, wait: Any, what: str) -> None:
    arguments, message = TYPES[what]
    with pytest.raises(TypeError, match=message):
        build(wait, flights, **arguments)


@WAITS
@pytest.mark.parametrize("schema", ["temp doubel", "temp double,"])
def test_a_schema_that_is_not_ddl_is_refused_with_its_position(flights: DataFrame, wait: Any, schema: str) -> None:
    with pytest.raises(ValueError, match=r"^the schema must give each new column a name and a type, ") as caught:
        build(wait, flights, schema=schema)
    assert re.search(r"temp[\s\S]*\^\^\^", str(caught.value.__cause__))


def test_in_a_case_sensitive_session_case_distinguishes_columns(spark: SparkSession, flights: DataFrame) -> None:
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        assert build(ordered_wait, flights, schema="HOUR double").columns == ["origin", "Hour", "day", "HOUR"]
        with pytest.raises(ValueError, match="no such column: 'ORIGIN'"):
            build(ordered_wait, flights, inputs=["ORIGIN"])
    finally:
        spark.conf.set("spark.sql.caseSensitive", "false")


def test_an_unpicklable_capture_is_refused_with_an_example_of_open(flights: DataFrame) -> None:
    client = threading.Lock()

    async def locked(origin: str) -> float:
        with client:
            return await look_up(origin)

    for build_it in (
        lambda: build(ordered_wait, flights, function=locked),
        lambda: async_pandas_udf(locked, "double", timeout=5.0),
    ):
        with pytest.raises(TypeError, match=r"\(client: lock\) that cannot be sent[\s\S]*async def open\(self\):"):
            build_it()


EVENT_TIMES = {
    "no timestamp": (("day", "10 seconds"), TypeError, "event_time must be a timestamp column, and 'day' is string"),
    "no such column": (("daytime", "10 seconds"), ValueError, "no such column: 'daytime'"),
    "no interval": (("ts", "soon"), ValueError, "must be an interval such as .* got 'soon'"),
    "a negative interval": (("ts", "-5 seconds"), ValueError, "must be an interval"),
    "a unit without a length": (("ts", "1 month"), ValueError, "with microseconds, .* or weeks, got '1 month'"),
    "a number": (("ts", 10), TypeError, "must be an interval"),
    "no bound": (("ts", None), ValueError, "belong together"),
    "a bound without a column": ((None, "10 seconds"), ValueError, "belong together"),
}


@pytest.mark.parametrize("what", EVENT_TIMES)
def test_a_bad_event_time_is_refused_by_name(flights: DataFrame, what: str) -> None:
    (event_time, bound), error, message = EVENT_TIMES[what]
    df = flights.withColumn("ts", F.to_timestamp("day"))
    with pytest.raises(error, match=message):
        build(unordered_wait, df, event_time=event_time, max_out_of_orderness=bound)


def test_a_column_udf_checks_its_options_at_once() -> None:
    for arguments, error in (
        ({"capacity": 0}, ValueError),
        ({"timeout": -1.0}, ValueError),
        ({"capasity": 1}, TypeError),
    ):
        with pytest.raises(error):
            async_pandas_udf(look_up, "double", **({"timeout": 5.0} | arguments))


def test_a_column_udf_checks_what_depends_on_the_session_where_it_is_used(flights: DataFrame) -> None:
    with pytest.raises(
        ValueError, match=r"^the type must be a Spark type or its DDL string, such as .* got 'doubel x'"
    ):
        flights.select(async_pandas_udf(look_up, "doubel x", timeout=5.0)("origin"))
    with pytest.raises(ValueError, match="cluster_capacity must be at least"):
        flights.select(async_pandas_udf(look_up, "double", timeout=5.0, cluster_capacity=1)("origin"))


def test_ordered_wait_has_no_event_time(flights: DataFrame) -> None:
    """No row overtakes another, so no watermark is needed."""
    with pytest.raises(TypeError, match=r"ordered_wait has no event_time: .* Omit event_time and max_out_of_orderness"):
        build(ordered_wait, flights, event_time="ts")


@pytest.mark.variation
def test_timestamps_in_a_time_zone_that_python_lacks_are_refused(spark: SparkSession, flights: DataFrame) -> None:
    """Spark accepts abbreviations. Without timestamps they do not matter."""
    abbreviated = spark.newSession()
    abbreviated.conf.set("spark.sql.session.timeZone", "PST")
    df = abbreviated.createDataFrame(flights.collect(), flights.schema)
    message = "Python has no time zone 'PST', .*: set spark.sql.session.timeZone to a region"
    with pytest.raises(ValueError, match=message):
        build(ordered_wait, df, schema="at timestamp")
    with pytest.raises(ValueError, match=message):
        build(ordered_wait, df.withColumn("at", F.current_timestamp()), inputs=["at"])
    with pytest.raises(ValueError, match=message):
        df.select(async_pandas_udf(look_up, "timestamp", timeout=5.0)("origin"))
    assert build(ordered_wait, df.withColumn("at", F.current_timestamp())).columns[-1] == "temp"
    spark.range(1)  # makes this session the active one again
