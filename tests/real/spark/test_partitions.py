"""Partitions: empty ones, many, and those that Spark coalesces while the job runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from tests.entry_points import EVERY_ENTRY_POINT, with_answer


async def double(value: int) -> int:
    return 2 * value


def doubled(df: DataFrame, entry_point: str) -> DataFrame:
    return with_answer(df, entry_point, double, "long")


@EVERY_ENTRY_POINT
def test_an_empty_dataframe_keeps_its_columns_and_makes_no_call(spark: SparkSession, entry_point: str) -> None:
    out = doubled(spark.range(0), entry_point)
    assert out.columns == ["id", "answer"]
    assert out.collect() == []


@EVERY_ENTRY_POINT
def test_empty_partitions_may_be_among_others(spark: SparkSession, entry_point: str) -> None:
    out = doubled(spark.range(0, 3, 1, 8).where("id <> 1"), entry_point).collect()
    assert [tuple(row) for row in out] == [(0, 0), (2, 4)]


@pytest.fixture
def many_shuffle_partitions(spark: SparkSession) -> Iterator[None]:
    key = "spark.sql.shuffle.partitions"
    before = spark.conf.get(key)
    spark.conf.set(key, "30")
    yield
    assert before is not None
    spark.conf.set(key, before)


@pytest.mark.usefixtures("many_shuffle_partitions")
@EVERY_ENTRY_POINT
def test_partitions_that_spark_coalesces_lose_no_row(spark: SparkSession, entry_point: str) -> None:
    shuffled = spark.range(0, 500, 1, 4).groupBy("id").count()
    out = doubled(shuffled, entry_point).withColumn("partition", F.spark_partition_id()).collect()
    assert sorted((row.id, row.answer) for row in out) == [(n, 2 * n) for n in range(500)]
    assert len({row.partition for row in out}) < 30


def test_a_batch_of_one_row_and_a_partition_of_many_batches(spark: SparkSession) -> None:
    out = doubled(spark.range(0, 5000, 1, 1), "unordered").agg(F.sum("answer"), F.countDistinct("id")).first()
    assert out is not None
    assert tuple(out) == (5000 * 4999, 5000)
