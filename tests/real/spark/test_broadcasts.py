"""Broadcast variables in the function, wherever an ordinary UDF may use them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import trio
from pyspark import Broadcast
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from tests.support import PATIENCE
from trio_asyncio_io.gates import RateLimit
from udfs import async_pandas_udf, ordered_wait, rehearse

NAMES = {0: "zero", 1: "one", 2: "two"}


@pytest.fixture
def names(spark: SparkSession) -> Iterator[Broadcast[dict[int, str]]]:
    made = spark.sparkContext.broadcast(NAMES)
    yield made
    made.unpersist(blocking=True)


@pytest.fixture
def name(names: Broadcast[dict[int, str]]) -> Any:
    async def name(id: int) -> str:  # noqa: A002 - the column
        await trio.sleep(0.01)
        return names.value[id]

    return name


@pytest.fixture
def numbers(spark: SparkSession) -> DataFrame:
    return spark.range(len(NAMES))


def test_a_column_of_several_queries_and_sql_beside_an_ordinary_udf(
    spark: SparkSession, numbers: DataFrame, name: Any
) -> None:
    column = async_pandas_udf(name, "string", timeout=PATIENCE)
    plus = F.udf(lambda number: number + 1, "long")
    for _ in range(2):
        rows = numbers.select(plus("id"), column("id").alias("x"), column("id").alias("y")).collect()
        assert [tuple(row) for row in rows] == [(n + 1, text, text) for n, text in NAMES.items()]
    spark.udf.register("name", column)
    for _ in range(2):
        assert [row.x for row in spark.sql("select name(id) as x from range(3)").collect()] == list(NAMES.values())


@pytest.mark.variation
def test_rows_with_a_weight_and_a_handler(numbers: DataFrame, name: Any, names: Broadcast[dict[int, str]]) -> None:
    gate = RateLimit(1e6, weight=lambda id: len(names.value[id]))  # noqa: A006 - as above

    async def hang(id: int) -> None:  # noqa: A002 - as above
        await trio.sleep_forever()

    once = ordered_wait(numbers, name, "x string", timeout=PATIENCE, gate=gate)
    twice = ordered_wait(once, hang, "y string", timeout=1.0, on_timeout=name)
    assert [tuple(row) for row in twice.collect()] == [(n, text, text) for n, text in NAMES.items()]


@pytest.mark.variation
def test_a_rehearsal_and_its_job(spark: SparkSession, name: Any) -> None:
    arguments: Any = spark.range(400).select((F.col("id") % len(NAMES)).alias("id")), name, "x string"
    forecast = rehearse(*arguments, 40, timeout=PATIENCE)
    assert ordered_wait(*arguments, **forecast.best).distinct().count() == len(NAMES)


def test_a_function_that_is_not_used_leaves_nothing_to_the_next_query(spark: SparkSession, numbers: DataFrame) -> None:
    destroyed = spark.sparkContext.broadcast(NAMES)

    @async_pandas_udf("string", timeout=PATIENCE)
    async def name(id: int) -> str:  # noqa: A002 - as above
        return destroyed.value[id]

    destroyed.destroy(blocking=True)
    assert numbers.select(F.udf(lambda number: number + 1, "long")("id")).count() == len(NAMES)
    with pytest.raises(Exception, match=r"Attempted to use Broadcast.*after it was destroyed"):
        numbers.select(name("id")).collect()
