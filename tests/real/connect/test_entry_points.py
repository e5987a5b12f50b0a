"""The column UDF and the DataFrame operators in a remote session."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from tests.entry_points import EVERY_ENTRY_POINT, with_answer
from tests.service import Connected, Service, check_connected
from tests.support import PATIENCE
from udfs import FixedDelay, async_pandas_udf, ordered_wait

ROWS = 40
EITHER = pytest.mark.parametrize("entry_point", ["column", "unordered"])


@pytest.fixture
def numbers(spark: SparkSession) -> DataFrame:
    """0 to 39 in two partitions; an Arrow batch holds seven rows."""
    return spark.range(0, ROWS, 1, 2)


async def tenfold(number: int) -> int:
    return 10 * number


async def trouble(number: int) -> int:
    if number == 7:
        raise LookupError("no row 7")
    return 10 * number


@EVERY_ENTRY_POINT
def test_a_function_is_opened_once_per_process_and_called_once_per_row(
    numbers: DataFrame, service: Service, entry_point: str
) -> None:
    out = with_answer(numbers, entry_point, Connected(service.client)).collect()
    check_connected(out, ROWS, service.calls)


def test_a_column_may_be_used_wherever_spark_accepts_one(spark: SparkSession, numbers: DataFrame) -> None:
    column = async_pandas_udf(tenfold, "long", timeout=PATIENCE)
    assert numbers.withColumn("ten", column(F.col("id") + 1)).where("ten <= 20").collect() == [(0, 10), (1, 20)]
    assert numbers.where(column("id") < 20).count() == 2
    spark.udf.register("tenfold", column)
    assert spark.sql("select tenfold(id) as ten from range(3)").collect() == [(0,), (10,), (20,)]
    assert numbers.select(column("id")).columns == ["tenfold(id)"]


@EVERY_ENTRY_POINT
def test_a_failed_row_is_null_or_has_its_error(numbers: DataFrame, entry_point: str) -> None:
    out = with_answer(numbers, entry_point, trouble, "long", on_error="null").where("answer is null").collect()
    assert [row.id for row in out] == [7]
    retry = FixedDelay(1, 0.0, retry_on=LookupError)
    out = with_answer(numbers, entry_point, trouble, "long", on_error="column", retry=retry)
    [row] = out.where("error is not null").collect()
    assert (row.id, row.answer) == (7, None)
    assert (row.error.type, row.error.message, row.error.attempts) == ("LookupError", "no row 7", 2)


@EITHER
def test_the_users_exception_and_its_row_reach_the_client(numbers: DataFrame, entry_point: str) -> None:
    with pytest.raises(PythonException) as caught:
        with_answer(numbers, entry_point, trouble, "long").collect()
    assert "LookupError: no row 7\nelement 7, row (7), attempt 1" in str(caught.value)


def test_a_bad_plan_is_refused_when_it_is_built(numbers: DataFrame) -> None:
    with pytest.raises(ValueError, match=r"no such column: 'nobody' \(columns: id"):
        ordered_wait(numbers, tenfold, "ten long", inputs=["nobody"], timeout=PATIENCE)
    with pytest.raises(ValueError, match="the schema must give each new column a name and a type"):
        ordered_wait(numbers, tenfold, "ten lnog", inputs=["id"], timeout=PATIENCE)


@EITHER
def test_times_are_in_the_time_zone_of_the_session(spark: SparkSession, entry_point: str) -> None:
    async def zone_and_noon(at: datetime) -> dict[str, Any]:
        return {"offset": str(at.utcoffset()), "noon": datetime(2013, 7, 1, 12)}

    df = spark.sql("select timestamp'2013-07-01 12:00:00' as at")
    if entry_point == "column":
        column = async_pandas_udf(zone_and_noon, "struct<offset:string, noon:timestamp>", timeout=PATIENCE)
        out = df.select("at", column("at").alias("answer")).select("at", "answer.*")
    else:
        out = ordered_wait(df, zone_and_noon, "offset string, noon timestamp", timeout=PATIENCE)
    assert out.selectExpr("offset", "noon = at as same").collect() == [("-1 day, 20:00:00", True)]
