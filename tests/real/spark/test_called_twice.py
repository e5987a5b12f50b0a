"""Where Spark runs a plan twice: each row is called twice, unless its results are stored first."""

from __future__ import annotations

import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

from udfs import async_pandas_udf, unordered_wait

ROWS = 40
KINDS = pytest.mark.parametrize("kind", ["column", "rows"])
SAMPLED = pytest.mark.parametrize(
    "sampled",
    [lambda df: df.orderBy("answer"), lambda df: df.repartitionByRange(2, "answer")],
    ids=["orderBy", "repartitionByRange"],
)


def asked(df: DataFrame, kind: str, client: Any) -> DataFrame:
    """With the service's answer to each row, as a column or by a DataFrame operator."""

    async def ask(id: int) -> str:  # noqa: A002 - the column is called so
        return await client.ask(id)

    if kind == "column":
        return df.withColumn("answer", async_pandas_udf(ask, "string", timeout=60.0)("id"))
    return unordered_wait(df, ask, "answer string", timeout=60.0)


@pytest.fixture(params=["localCheckpoint", "persist", "write"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[DataFrame], DataFrame]:
    """One of the ways to store the rows of a DataFrame."""

    def write(df: DataFrame) -> DataFrame:
        df.write.parquet(str(tmp_path / "answers"))
        return df.sparkSession.read.parquet(str(tmp_path / "answers"))

    return write if request.param == "write" else operator.methodcaller(request.param)


@KINDS
@SAMPLED
def test_a_sort_samples_its_input_and_each_row_is_called_twice(
    spark: SparkSession, service: Any, kind: str, sampled: Callable[[DataFrame], DataFrame]
) -> None:
    out = sampled(asked(spark.range(0, ROWS, 1, 4), kind, service.client)).collect()
    assert len(out) == ROWS
    assert len(service.calls) == 2 * ROWS


@KINDS
@SAMPLED
def test_rows_whose_results_are_stored_first_are_called_once(
    spark: SparkSession,
    service: Any,
    kind: str,
    sampled: Callable[[DataFrame], DataFrame],
    store: Callable[[DataFrame], DataFrame],
) -> None:
    out = sampled(store(asked(spark.range(0, ROWS, 1, 4), kind, service.client))).collect()
    assert sorted(row.answer for row in out) == sorted(map(str, range(ROWS)))
    assert sorted(map(int, service.calls)) == list(range(ROWS))


def test_a_condition_around_a_column_is_no_filter(spark: SparkSession, service: Any) -> None:
    answered = asked(spark.range(0, ROWS, 1, 4), "column", service.client)
    out = answered.select(F.when(F.col("id") < 10, F.col("answer")).alias("answer")).collect()
    assert sum(row.answer is not None for row in out) == 10
    assert len(service.calls) == ROWS


@KINDS
def test_rows_that_are_filtered_first_are_the_only_ones_called(spark: SparkSession, service: Any, kind: str) -> None:
    numbers = spark.range(0, ROWS, 1, 4)
    wanted = asked(numbers.where("id < 10"), kind, service.client)
    out = wanted.unionByName(numbers.where("not (id < 10)"), allowMissingColumns=True).collect()
    assert {row.id: row.answer for row in out} == {n: str(n) if n < 10 else None for n in range(ROWS)}
    assert sorted(map(int, service.calls)) == list(range(10))
