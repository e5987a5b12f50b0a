"""The column UDF wherever Spark accepts a column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import random
from typing import Any

import pandas as pd
import pytest
import trio
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from tests.service import Service
from tests.support import PATIENCE, thorough_except
from udfs import AsyncPandasUDF, async_pandas_udf

ROWS = 100


@async_pandas_udf("long", timeout=PATIENCE)
async def plus_one(value: int) -> int:
    return value + 1


@async_pandas_udf("string", timeout=PATIENCE)
async def label(number: int | None, text: str | None) -> str:
    return f"{number}:{text}"


@pytest.fixture
def numbers(spark: SparkSession) -> DataFrame:
    """0 to 99 in four partitions; an Arrow batch holds seven rows."""
    return spark.range(0, ROWS, 1, 4)


@pytest.fixture
def counted(service: Service) -> AsyncPandasUDF:
    """Returns its input. The service counts the calls."""
    client = service.client

    @async_pandas_udf("long", capacity=10, timeout=PATIENCE)
    async def counted(value: int) -> int:
        return int(await client.ask(value))

    return counted  # type: ignore[no-any-return]


def test_every_row_gets_its_own_result_however_late_it_comes(numbers: DataFrame) -> None:
    """Random latencies, so that results come in another order and in other chunks than the rows."""

    @async_pandas_udf("long", capacity=20, timeout=PATIENCE)
    async def dawdle(value: int) -> int:
        await trio.sleep(random() / 50)
        return 10 * value

    out = numbers.select("id", dawdle("id").alias("ten")).collect()
    assert [(row.id, row.ten) for row in out] == [(value, 10 * value) for value in range(ROWS)]


def test_select_with_names_and_columns_and_several_inputs(numbers: DataFrame) -> None:
    out = numbers.select(
        plus_one("id").alias("by_name"),
        plus_one(F.col("id") * 2).alias("by_column"),
        label("id", F.when(F.col("id") % 2 == 0, "even")).alias("two"),
    ).collect()
    assert [tuple(row) for row in out] == [
        (value + 1, 2 * value + 1, f"{value}:{'even' if value % 2 == 0 else None}") for value in range(ROWS)
    ]


def test_the_column_is_named_after_the_function(numbers: DataFrame) -> None:
    assert numbers.select(plus_one("id")).columns == ["plus_one(id)"]


def test_a_filter_on_the_result_calls_once_for_each_row(
    numbers: DataFrame, counted: AsyncPandasUDF, service: Service
) -> None:
    """Spark would call a deterministic function once for the filter and again for the column."""
    out = numbers.withColumn("same", counted("id")).where("same >= 90").collect()
    assert [(row.id, row.same) for row in out] == [(value, value) for value in range(90, ROWS)]
    assert Counter(service.calls) == Counter(map(str, range(ROWS)))


def test_a_result_that_is_used_twice_costs_one_call(
    numbers: DataFrame, counted: AsyncPandasUDF, service: Service
) -> None:
    out = (
        numbers.withColumn("same", counted("id"))
        .select((F.col("same") + F.col("same")).alias("double"), "same")
        .collect()
    )
    assert [(row.double, row.same) for row in out] == [(2 * value, value) for value in range(ROWS)]
    assert Counter(service.calls) == Counter(map(str, range(ROWS)))


def test_a_udf_of_a_udf_calls_each_once_for_each_row(
    numbers: DataFrame, counted: AsyncPandasUDF, service: Service
) -> None:
    out = numbers.select(plus_one(counted(plus_one("id"))).alias("n")).collect()
    assert [row.n for row in out] == [value + 2 for value in range(ROWS)]
    assert Counter(service.calls) == Counter(str(value + 1) for value in range(ROWS))


def test_sql_after_it_was_registered(
    spark: SparkSession, numbers: DataFrame, counted: AsyncPandasUDF, service: Service
) -> None:
    spark.udf.register("counted", counted)
    spark.udf.register("tag", label)
    numbers.createOrReplaceTempView("numbers")
    query = "select id, n, tag(n, 'x') as tag from (select id, counted(id) as n from numbers) where n < 20"
    assert [(row.id, row.n, row.tag) for row in spark.sql(query).collect()] == [(n, n, f"{n}:x") for n in range(20)]
    assert Counter(service.calls) == Counter(map(str, range(ROWS)))


def test_a_deterministic_udf_is_not_called_if_its_result_is_not_used(numbers: DataFrame, service: Service) -> None:
    unused = async_pandas_udf(service.client.ask, "string", timeout=PATIENCE, deterministic=True)
    assert numbers.withColumn("answer", unused("id")).count() == ROWS
    assert service.calls == []


def test_integers_with_nulls_stay_exact(numbers: DataFrame) -> None:
    """As floats, they would be rounded: in a column, and inside a value."""

    @async_pandas_udf("struct<types string, values array<long>>", timeout=PATIENCE)
    async def describe(value: int | None, inner: dict[str, list[int | None]]) -> tuple[str, list[int | None]]:
        return type(value).__name__, [value, *inner["a"]]

    large = F.when(F.col("id") % 2 == 0, F.col("id") + 2**60 + 1)
    out = numbers.select(describe(large, F.create_map(F.lit("a"), F.array(large))).alias("x")).select("x.*").collect()
    for number, row in enumerate(out):
        value = None if number % 2 else number + 2**60 + 1
        assert tuple(row) == (type(value).__name__, [value, value])


def test_null_nan_and_a_struct_of_nulls_differ(spark: SparkSession) -> None:
    @async_pandas_udf("string", timeout=PATIENCE)
    async def shown(number: float | None, struct: dict[str, int | None] | None) -> str:
        return f"{number} {struct}"

    df = spark.sql("select stack(2, double('NaN'), named_struct('a', int(null)), null, null) as (number, struct)")
    assert [row[0] for row in df.select(shown("number", "struct")).collect()] == ["nan {'a': None}", "None None"]


def add_one(batches: Iterator[pd.Series]) -> Iterator[pd.Series]:
    for batch in batches:
        yield batch + 1


def add_one_by_map(batches: Iterator[pd.Series]) -> Iterator[pd.Series]:
    return map(pd.Series.add, batches, iter(lambda: 1, None))


def add_one_by_expression(batches: Iterator[pd.Series]) -> Iterator[pd.Series]:
    return (batch + 1 for batch in batches)


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(F, "arrow_udf"), reason="both would run in one worker and exchange pandas objects")
@pytest.mark.parametrize(
    "function", thorough_except([add_one_by_map], [add_one, add_one_by_map, add_one_by_expression])
)
def test_a_pandas_udf_over_iterators_may_be_called_on_the_result_and_the_other_way_round(
    numbers: DataFrame, function: Any
) -> None:
    theirs = F.pandas_udf(function, "long")  # type: ignore[call-overload]
    out = numbers.select(plus_one(theirs("id")), plus_one(plus_one(theirs("id")))).collect()
    assert [tuple(row) for row in out] == [(value + 2, value + 3) for value in range(ROWS)]
    out = numbers.select(theirs(plus_one("id")), plus_one(theirs(plus_one("id")))).collect()
    assert [tuple(row) for row in out] == [(value + 2, value + 3) for value in range(ROWS)]


@pytest.mark.skipif(hasattr(F, "arrow_udf"), reason="Spark has Arrow UDFs")
@pytest.mark.parametrize("function", [add_one, add_one_by_expression])
def test_a_pandas_udf_over_iterators_in_the_same_worker_is_refused(numbers: DataFrame, function: Any) -> None:
    theirs = F.pandas_udf(function, "long")  # type: ignore[call-overload]
    for column in (plus_one(theirs("id")), theirs(plus_one("id"))):
        with pytest.raises(
            PythonException, match=r"plus_one cannot exchange Arrow data .* another pandas UDF: use ord"
        ):
            numbers.select(column).collect()


@pytest.mark.skipif(hasattr(F, "arrow_udf"), reason="Spark has Arrow UDFs")
def test_a_pandas_udf_that_returns_a_map_in_the_same_worker_is_an_error(numbers: DataFrame) -> None:
    theirs = F.pandas_udf(add_one_by_map, "long")  # type: ignore[call-overload]
    for column in (plus_one(theirs("id")), theirs(plus_one("id"))):
        with pytest.raises(PythonException):
            numbers.select(column).collect()


@pytest.mark.variation
def test_a_pandas_udf_of_series_may_be_called_on_the_result_and_the_other_way_round(numbers: DataFrame) -> None:
    def add_one(values: pd.Series) -> pd.Series:
        return values + 1

    theirs = F.pandas_udf(add_one, "long")  # type: ignore[call-overload]
    out = numbers.select(theirs(plus_one("id")).alias("a"), plus_one(theirs("id")).alias("b")).collect()
    assert [tuple(row) for row in out] == [(value + 2, value + 2) for value in range(ROWS)]


@pytest.mark.variation
def test_grouping_and_joining_on_the_result(numbers: DataFrame) -> None:
    @async_pandas_udf("int", timeout=PATIENCE)
    async def bucket(value: int) -> int:
        return value % 3

    counts = numbers.groupBy(bucket("id").alias("bucket")).count()
    assert sorted(map(tuple, counts.collect())) == [(0, 34), (1, 33), (2, 33)]
    joined = counts.join(numbers.select("id", bucket("id").alias("bucket")), "bucket")
    assert joined.count() == ROWS
