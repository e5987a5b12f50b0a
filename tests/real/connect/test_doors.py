"""The column UDF and the DataFrame operators in a remote session: all that they do in a classic one."""

from __future__ import annotations

import os
from collections import Counter
from datetime import datetime
from typing import Any

import pytest
from pyspark.errors import ParseException, PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

from udfs import AsyncFunction, FixedDelay, async_pandas_udf, keyed_wait, ordered_wait, unordered_wait

ROWS = 40
DOORS = pytest.mark.parametrize("door", ["column", "ordered", "unordered", "keyed"])


@pytest.fixture
def numbers(spark: SparkSession) -> DataFrame:
    """0 to 39 in two partitions; an Arrow batch holds seven rows."""
    return spark.range(0, ROWS, 1, 2)


def answered(df: DataFrame, door: str, function: Any, kind: str = "long", **options: Any) -> DataFrame:
    """id and answer, by the door of this name; and error, where errors have a column."""
    options = {"timeout": 30.0, **options}
    if door == "column":
        out = df.select("id", async_pandas_udf(function, kind, **options)("id").alias("answer"))
        if options.get("on_error") == "column":
            out = out.select("id", F.col("answer.result").alias("answer"), "answer.error")
        return out
    if door == "keyed":
        return keyed_wait(df, function, f"answer {kind}", inputs=["id"], key="id", **options)
    wait = ordered_wait if door == "ordered" else unordered_wait
    return wait(df, function, f"answer {kind}", inputs=["id"], **options)


async def tenfold(number: int) -> int:
    return 10 * number


async def trouble(number: int) -> int:
    if number == 7:
        raise LookupError("there is no seven")
    return 10 * number


class Connected(AsyncFunction[int, str]):
    """Asks over connections that are opened once per process, and gives the process beside the answer."""

    def __init__(self, client: Any) -> None:
        self.client = client

    async def open(self) -> None:
        await self.client.ask(f"opened in {os.getpid()}")

    async def invoke(self, number: int) -> str:  # type: ignore[override]
        return f"{await self.client.ask(number)} in {os.getpid()}"


@DOORS
def test_every_row_gets_its_result(numbers: DataFrame, door: str) -> None:
    out = answered(numbers, door, tenfold).collect()
    assert sorted((row.id, row.answer) for row in out) == [(n, 10 * n) for n in range(ROWS)]


@DOORS
def test_a_function_is_opened_once_per_process_and_called_once_per_row(
    numbers: DataFrame, service: Any, door: str
) -> None:
    out = answered(numbers, door, Connected(service.client), "string").collect()
    processes = {row.answer.split()[-1] for row in out}
    opened = [f"opened in {process}" for process in processes]
    assert Counter(service.calls) == Counter([*map(str, range(ROWS)), *opened])


def test_a_column_stands_wherever_spark_takes_one(spark: SparkSession, numbers: DataFrame) -> None:
    column = async_pandas_udf(tenfold, "long", timeout=30.0)
    assert numbers.withColumn("ten", column(F.col("id") + 1)).where("ten <= 20").collect() == [(0, 10), (1, 20)]
    assert numbers.where(column("id") < 20).count() == 2
    spark.udf.register("tenfold", column)
    assert spark.sql("select tenfold(id) as ten from range(3)").collect() == [(0,), (10,), (20,)]
    assert numbers.select(column("id")).columns == ["tenfold(id)"]


def test_operators_follow_each_other_and_keep_the_order_and_the_other_columns(numbers: DataFrame) -> None:
    out = (
        numbers.withColumn("text", F.concat(F.lit("n"), "id"))
        .transform(ordered_wait, tenfold, "ten long", inputs=["id"], timeout=30.0)
        .transform(ordered_wait, tenfold, "hundred long", inputs=["ten"], timeout=30.0)
    )
    assert out.collect() == [(n, f"n{n}", 10 * n, 100 * n) for n in range(ROWS)]


@DOORS
def test_a_failed_row_is_null_or_says_why(numbers: DataFrame, door: str) -> None:
    out = answered(numbers, door, trouble, on_error="null").where("answer is null").collect()
    assert [row.id for row in out] == [7]
    retry = FixedDelay(1, 0.0, retry_on=LookupError)
    [row] = answered(numbers, door, trouble, on_error="column", retry=retry).where("error is not null").collect()
    assert (row.id, row.answer) == (7, None)
    assert (row.error.type, row.error.message, row.error.attempts) == ("LookupError", "there is no seven", 2)


@pytest.mark.parametrize("door", ["column", "unordered"])
def test_the_users_exception_and_its_row_reach_the_client(numbers: DataFrame, door: str) -> None:
    with pytest.raises(PythonException) as caught:
        answered(numbers, door, trouble).collect()
    assert "LookupError: there is no seven\nelement 7, row (7), attempt 1" in str(caught.value)


def test_a_plan_that_does_not_do_is_refused_when_it_is_built(numbers: DataFrame) -> None:
    with pytest.raises(ValueError, match="no such column: 'nobody' \\(columns: id"):
        ordered_wait(numbers, tenfold, "ten long", inputs=["nobody"], timeout=30.0)
    with pytest.raises(ParseException):
        ordered_wait(numbers, tenfold, "ten lnog", inputs=["id"], timeout=30.0)


@pytest.mark.parametrize("door", ["column", "ordered"])
def test_times_are_in_the_sessions_zone(spark: SparkSession, door: str) -> None:
    async def zone_and_noon(number: int, at: datetime) -> dict[str, Any]:
        return {"offset": str(at.utcoffset()), "noon": datetime(2013, 7, 1, 12)}

    df = spark.sql("select 1L as id, timestamp'2013-07-01 12:00:00' as at")
    kind = "offset string, noon timestamp"
    if door == "column":
        column = async_pandas_udf(zone_and_noon, f"struct<{kind.replace(' ', ':')}>".replace(",:", ","), timeout=30.0)
        out = df.select("at", column("id", "at").alias("answer")).select("at", "answer.*")
    else:
        out = ordered_wait(df, zone_and_noon, kind, inputs=["id", "at"], timeout=30.0)
    assert out.selectExpr("offset", "noon = at as same").collect() == [("-1 day, 20:00:00", True)]
