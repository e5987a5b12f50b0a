"""Bad arguments are refused by name when the plan is built, before any call.

A case for each kind of check, to show that it is made with a real DataFrame: tests/udfs has the messages.
"""

from __future__ import annotations

import re
import threading
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from udfs import async_pandas_udf, ordered_wait, unordered_wait


async def look_up(origin: str) -> float:
    raise AssertionError("this must not be called")


async def by_name(name: str) -> float:
    raise AssertionError("this must not be called")


@pytest.fixture(scope="module")
def flights(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([("EWR", 5, "2013-01-01")], "origin string, Hour int, day string")


def build(wait: Any, df: DataFrame, *, function: Any = look_up, schema: Any = "temp double", **more: Any) -> Any:
    return wait(df, function, schema, **({"timeout": 5.0} | more))


VALUES = {
    "an input that does not exist": ({"inputs": ["orgin"]}, "no such column: 'orgin' \\(columns: origin, Hour, day"),
    "a new column that exists in another case": ({"schema": "HOUR double"}, "there is a column 'HOUR' already"),
    "an error column that exists": (
        {"schema": "error int", "on_error": "column"},
        "two new columns have the same name",
    ),
    "a metadata column that exists": ({"metadata": "day"}, "there is a column 'day' already"),
    "an error column that exists in another case": (
        {"on_error": "column", "error": "DAY"},
        r"there is a column 'DAY' already: give the new one another name with error=\"\.\.\.\", or drop",
    ),
    "a parameter that is no column": (
        {"function": by_name},
        r"by_name has a parameter 'name', but there is no such column \(columns: origin, Hour, day.*\)",
    ),
    "a schema of a name without a type": (
        {"schema": "name"},
        r"^the schema must give each new column a name and a type, such as \"temp double, wind double\"; got 'name' \(",
    ),
    "both capacities": ({"capacity": 9, "cluster_capacity": 9}, "capacity=9 and cluster_capacity=9 exclude each other"),
    "a cluster capacity below the number of tasks": (
        {"cluster_capacity": 1},
        "cluster_capacity must be at least .* 2, .* got 1",
    ),
    "a flatten of another join": ({"flatten": "left"}, "flatten must be True, False or \"outer\", got 'left'"),
    "an event time without its bound": ({"event_time": "day"}, "belong together"),
    "a bound that is no interval": ({"event_time": "ts", "max_out_of_orderness": "soon"}, "must be an interval such"),
}
TYPES = {
    "metrics without a name": ({"metrics": 5}, r"metrics must be a name or a pyspark.sql.Observation, got 5"),
    "more inputs than parameters": (
        {"inputs": ["origin", "day"], "on_error": "null"},
        r"look_up takes \(origin\), got 2 columns \(origin, day\): give one column for each parameter",
    ),
    "an event time that is no timestamp": (
        {"event_time": "day", "max_out_of_orderness": "10 seconds"},
        "event_time must be a timestamp column, and 'day' is string",
    ),
}
CASES = [
    pytest.param(arguments, error, message, id=name)
    for error, cases in ((ValueError, VALUES), (TypeError, TYPES))
    for name, (arguments, message) in cases.items()
]


@pytest.mark.parametrize(("arguments", "error", "message"), CASES)
def test_a_bad_argument_is_refused_by_name(
    flights: DataFrame, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        build(unordered_wait, flights.withColumn("ts", F.to_timestamp("day")), **arguments)


def test_a_schema_that_is_not_ddl_is_refused_with_its_position(flights: DataFrame) -> None:
    with pytest.raises(ValueError, match=r"^the schema must give each new column a name and a type, ") as caught:
        build(unordered_wait, flights, schema="temp doubel")
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


def test_a_column_udf_checks_what_depends_on_the_session_where_it_is_used(flights: DataFrame) -> None:
    with pytest.raises(
        ValueError, match=r"^the type must be a Spark type or its DDL string, such as .* got 'doubel x'"
    ):
        flights.select(async_pandas_udf(look_up, "doubel x", timeout=5.0)("origin"))
    with pytest.raises(ValueError, match="cluster_capacity must be at least"):
        flights.select(async_pandas_udf(look_up, "double", timeout=5.0, cluster_capacity=1)("origin"))


@pytest.mark.variation
def test_timestamps_in_a_time_zone_that_python_lacks_are_refused(new_session: Any, flights: DataFrame) -> None:
    """Spark accepts abbreviations. Without timestamps they do not matter."""
    abbreviated = new_session()
    abbreviated.conf.set("spark.sql.session.timeZone", "PST")
    df = abbreviated.createDataFrame(flights.collect(), flights.schema).withColumn("at", F.current_timestamp())
    message = "Python has no time zone 'PST', .*: set spark.sql.session.timeZone to a region"
    with pytest.raises(ValueError, match=message):
        build(ordered_wait, df, inputs=["at"])
    with pytest.raises(ValueError, match=message):
        df.select(async_pandas_udf(look_up, "timestamp", timeout=5.0)("origin"))
    assert build(ordered_wait, df).columns[-1] == "temp"
