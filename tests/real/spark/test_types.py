"""Types: every value survives as an input, as a result and in each form of a struct."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import types as T  # noqa: N812 - its usual name

from tests.support import PATIENCE, thorough_except
from udfs import async_pandas_udf, ordered_wait

COLUMNS = {
    "flag": ("boolean", "true"),
    "tiny": ("tinyint", "-128y"),
    "small": ("smallint", "32767s"),
    "number": ("int", "-2147483648"),
    "big": ("bigint", "9223372036854775807L"),
    "half": ("float", "float('0.5')"),
    "nan": ("double", "double('NaN')"),
    "price": ("decimal(38,18)", "cast(123456789.123456789 as decimal(38,18))"),
    "text": ("string", "'Zürich ✈'"),
    "raw": ("binary", "X'00FF'"),
    "day": ("date", "date'1582-10-04'"),
    "instant": ("timestamp", "timestamp'2013-07-01 12:00:00.123456'"),
    "wall": ("timestamp_ntz", "timestamp_ntz'2013-03-10 02:30:00.000001'"),
    "span": ("interval day to second", "interval '1 02:03:04.000005' day to second"),
    "items": ("array<array<int>>", "array(array(1, null), null, array())"),
    "stamps": ("map<string,array<timestamp>>", "map('a', array(timestamp'2013-12-01 12:00:00', null), 'b', null)"),
    "inner": (
        "struct<x:double,inner:struct<tags:array<string>,raw:binary>>",
        "named_struct('x', 1.5d, 'inner', named_struct('tags', array('a', null), 'raw', X'01'))",
    ),
}
FIELDS = ", ".join(f"{name} {kind}" for name, (kind, _) in COLUMNS.items())


@pytest.fixture(params=thorough_except(["Asia/Kolkata", "GMT+2"], ["America/New_York", "Asia/Kolkata", "GMT+2"]))
def zone(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    """A time zone of the session. Neither is UTC."""
    key = "spark.sql.session.timeZone"
    before = spark.conf.get(key)
    spark.conf.set(key, request.param)
    yield request.param
    assert before is not None
    spark.conf.set(key, before)


@pytest.mark.skipif(not hasattr(T, "VariantType"), reason="Spark 3.5 has no variant")
@pytest.mark.parametrize("entry_point", ["column", "rows"])
def test_a_variant_is_a_python_value_in_both_directions(spark: SparkSession, entry_point: str) -> None:
    async def give_back(v: Any, w: Any) -> Any:
        return {"r": {"given": v}, "s": {"w": w, "n": len(v["a"])}}

    schema = "r variant, s struct<w array<variant>, n int>"
    df = spark.sql("""select parse_json('{"a": [1.5, null, true]}') v, array(parse_json('"x"'), null) w""")
    if entry_point == "column":
        made = async_pandas_udf(give_back, f"struct<{schema}>", timeout=PATIENCE)
        out = df.select(made("v", "w").alias("c")).select("c.*")
    else:
        out = ordered_wait(df, give_back, schema, timeout=PATIENCE)
    [row] = out.selectExpr("to_json(r) r", "to_json(s.w) w", "s.n").collect()
    assert row == Row(r='{"given":{"a":[1.5,null,true]}}', w='["x",null]', n=3)


@pytest.mark.skipif(hasattr(T, "VariantType"), reason="Spark 4.0 has variant")
def test_a_variant_is_refused_by_name_where_spark_lacks_it(spark: SparkSession) -> None:
    async def one(id: int) -> int:  # noqa: A002 - the name of the column
        return id

    with pytest.raises(ValueError, match=r"the schema must give each new column .*; got 'r variant' \("):
        ordered_wait(spark.range(1), one, "r variant", timeout=PATIENCE)


@pytest.mark.parametrize("entry_point", thorough_except(["rows"], ["column", "rows"]))
def test_an_input_may_be_returned_unchanged(spark: SparkSession, zone: str, entry_point: str) -> None:
    """With nulls in between. Spark shows the result as it shows the value, and the input is as it was."""

    async def give_back(*values: Any) -> tuple[Any, ...]:
        return values

    columns = [f"if(id % 3 = 1, null, {expression}) as {name}" for name, (_, expression) in COLUMNS.items()]
    df = spark.range(0, 20, 1, 2).selectExpr("id", *columns)
    if entry_point == "column":
        back = async_pandas_udf(give_back, f"struct<{FIELDS}>", timeout=PATIENCE)
        results = [f"back.{name} as {name}_2" for name in COLUMNS]
        out = df.withColumn("back", back(*COLUMNS)).selectExpr("id", *COLUMNS, *results)
    else:
        schema = T.StructType([T.StructField(f"{f.name}_2", f.dataType) for f in df.schema.fields[1:]])
        out = ordered_wait(df, give_back, schema, inputs=list(COLUMNS), timeout=PATIENCE)
    given = out.select("id", *COLUMNS)
    assert given.schema == df.schema
    assert {row.id: repr(row) for row in given.collect()} == {row.id: repr(row) for row in df.collect()}
    rows = out.collect()
    assert len(rows) == 20
    for row in rows:
        value, result = ([repr(each) for each in part] for part in (row[1:18], row[18:]))
        assert value == result
        assert len(value) == len(COLUMNS)
    shown = out.selectExpr(*(f"string({name}) = string({name}_2) as {name}" for name in COLUMNS)).distinct()
    assert {each for row in shown.collect() for each in row} == {True, None}


class NamedPoint(NamedTuple):
    at: datetime
    price: Decimal | None


@dataclass
class DataPoint:
    at: datetime
    price: Decimal | None


NOON = datetime(2013, 7, 1, 12)


def test_a_struct_may_come_in_any_shape_and_a_naive_datetime_is_in_the_sessions_zone(
    spark: SparkSession, zone: str
) -> None:
    @async_pandas_udf("struct<at timestamp, price decimal(10, 2)>", timeout=PATIENCE)
    async def point(shape: int) -> Any:
        price = Decimal("1.5")
        return [
            {"price": price, "at": NOON},
            NamedPoint(NOON, price),
            DataPoint(NOON, price),
            Row(price=price, at=NOON),
            (NOON, price),
            None,
        ][shape]

    rows = spark.range(0, 6, 1, 2).select(point("id").alias("p")).selectExpr("string(p.at) at", "string(p.price) price")
    assert [tuple(row) for row in rows.collect()] == [("2013-07-01 12:00:00", "1.50")] * 5 + [(None, None)]


REQUIRED = T.StructType([T.StructField("v", T.LongType(), nullable=False)])


@pytest.mark.parametrize("on_error", thorough_except(["null"], ["null", "column"]))
def test_a_failed_row_is_null_even_if_the_schema_forbids_null(
    spark: SparkSession, tmp_path: Path, on_error: Any
) -> None:
    async def odd(id: int) -> int | None:  # noqa: A002 - the name of the column
        if id % 2:
            raise ValueError("odd")
        return id or None

    out = ordered_wait(spark.range(0, 6, 1, 1), odd, REQUIRED, timeout=PATIENCE, on_error=on_error)
    assert out.schema["v"].nullable
    assert [row.v for row in out.collect()] == [None, None, 2, None, 4, None]
    assert out.where("v is null").count() == 4
    out.write.parquet(str(tmp_path / "out"))
    assert spark.read.parquet(str(tmp_path / "out")).where("v is null").count() == 4


@pytest.mark.parametrize("entry_point", thorough_except(["rows"], ["column", "rows"]))
def test_a_none_where_the_type_forbids_null_fails_its_row(spark: SparkSession, entry_point: str) -> None:
    kind = T.StructType([T.StructField("a", REQUIRED), T.StructField("b", T.ArrayType(T.LongType(), False))])

    async def some(id: int) -> dict[str, Any]:  # noqa: A002 - the name of the column
        return {"a": {"v": None if id == 1 else id}, "b": [None if id == 2 else id]}

    df = spark.range(0, 4, 1, 1)
    if entry_point == "column":
        made = df.select(async_pandas_udf(some, kind, timeout=PATIENCE, on_error="column")("id").alias("x"))
        out = made.selectExpr("x.result.a", "x.result.b", "x.error.message")
    else:
        out = ordered_wait(df, some, kind, timeout=PATIENCE, on_error="column").selectExpr("a", "b", "error.message")
    rows = out.collect()
    assert [row.a and row.a.v for row in rows] == [0, None, None, 3]
    assert [row.b for row in rows] == [[0], None, None, [3]]
    messages = [row.message for row in rows]
    assert (messages[0], messages[3]) == (None, None)
    assert "returned None for row (1), but 'a.v' is declared NOT NULL: return a value, or" in messages[1]
    assert "returned None for row (2), but 'b.element' is declared NOT NULL: return a value, or" in messages[2]


@pytest.mark.parametrize("entry_point", thorough_except(["rows"], ["column", "rows"]))
def test_char_and_varchar_are_strings_of_bounded_length(spark: SparkSession, entry_point: str) -> None:
    async def some(id: int) -> tuple[str, list[str]]:  # noqa: A002 - the name of the column
        return "x" * id, ["y" * id]

    df, kind = spark.range(0, 6, 1, 1), "c char(4), v array<varchar(3)>"
    if entry_point == "column":
        made = df.select(
            async_pandas_udf(
                some, f"struct<{kind.replace(' ', ':')}>".replace(",:", ","), timeout=PATIENCE, on_error="null"
            )("id").alias("x")
        )
        out = made.select("x.*")
    else:
        out = ordered_wait(df, some, kind, timeout=PATIENCE, on_error="null").drop("id")
    expected = [(("x" * n).ljust(4), ["y" * n]) for n in range(4)]
    assert [tuple(row) for row in out.collect()] == [*expected, (None, None), (None, None)]


@pytest.mark.variation
def test_a_column_uses_the_time_zone_of_the_session_that_runs_the_query(spark: SparkSession, new_session: Any) -> None:
    """Not that of the session that is active where the column is built."""

    @async_pandas_udf("timestamp", timeout=PATIENCE)
    async def noon(id: int) -> datetime:  # noqa: A002 - the name of the column
        return datetime(2020, 1, 1, 12)

    tokyo = new_session()
    tokyo.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    unset = new_session()
    unset.conf.unset("spark.sql.session.timeZone")
    for session in (spark, tokyo, unset):
        out = session.range(1).select(noon("id").alias("x"))
        assert out.selectExpr("cast(x as string) as x").first()["x"] == "2020-01-01 12:00:00"  # type: ignore[index]


def test_rows_keep_their_time_zone_if_that_of_the_session_changes_before_the_query_runs(new_session: Any) -> None:
    """Spark's own date and time functions do the same."""

    async def naive(at: datetime) -> datetime:
        return at.replace(tzinfo=None)

    session = new_session()
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    df = session.range(1).selectExpr("timestamp'2013-07-01 12:00:00' as at")
    out = ordered_wait(df, naive, "back timestamp", timeout=PATIENCE).selectExpr("at = back", "hour(back)")
    session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    assert [tuple(row) for row in out.collect()] == [(True, 12)]


def test_an_input_that_python_cannot_represent_fails_its_row(spark: SparkSession) -> None:
    async def one(*values: Any) -> int:
        return 1

    df = spark.sql("""
        select 0 as n, map(struct('a'), 1) as keyed, timestamp'2020-01-01' as at
        union all select 1, map(), timestamp'+12000-01-01'
        union all select 2, map(), timestamp'2020-01-01'
    """)
    out = ordered_wait(df, one, "v int", inputs=["keyed", "at"], timeout=PATIENCE, on_error="column")
    rows = {row.n: row for row in out.select("n", "v", "error").collect()}
    assert [rows[n].v for n in range(3)] == [None, None, 1]
    assert "unhashable type" in rows[0].error.message
    assert "the value of input 2, timestamp[us" in rows[1].error.message
    assert rows[2].error is None
