"""Partitions: empty ones, many, and those that Spark joins while the job runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

from udfs import async_pandas_udf, ordered_wait, unordered_wait

DOORS = ["column", "ordered", "unordered"]


async def double(value: int) -> int:
    return 2 * value


def doubled(df: DataFrame, door: str) -> DataFrame:
    """With a column `twice` by this door."""
    if door == "column":
        return df.withColumn("twice", async_pandas_udf(double, "long", timeout=30.0)("id"))
    wait = ordered_wait if door == "ordered" else unordered_wait
    return wait(df, double, "twice long", inputs=["id"], timeout=30.0)


@pytest.mark.parametrize("door", DOORS)
def test_an_empty_dataframe_keeps_its_columns_and_makes_no_call(spark: SparkSession, door: str) -> None:
    out = doubled(spark.range(0), door)
    assert out.columns == ["id", "twice"]
    assert out.collect() == []


@pytest.mark.parametrize("door", DOORS)
def test_empty_partitions_among_others_do_no_harm(spark: SparkSession, door: str) -> None:
    out = doubled(spark.range(0, 3, 1, 8).where("id <> 1"), door).collect()
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
@pytest.mark.parametrize("door", DOORS)
def test_partitions_that_spark_joins_at_run_time_lose_no_row(spark: SparkSession, door: str) -> None:
    shuffled = spark.range(0, 500, 1, 4).groupBy("id").count()
    out = doubled(shuffled, door).withColumn("partition", F.spark_partition_id()).collect()
    assert sorted((row.id, row.twice) for row in out) == [(n, 2 * n) for n in range(500)]
    assert len({row.partition for row in out}) < 30


def test_a_batch_of_one_row_and_a_partition_of_many_batches(spark: SparkSession) -> None:
    out = doubled(spark.range(0, 5000, 1, 1), "unordered").agg(F.sum("twice"), F.countDistinct("id")).first()
    assert out is not None
    assert tuple(out) == (5000 * 4999, 5000)
