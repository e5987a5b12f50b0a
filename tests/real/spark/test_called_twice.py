"""Where Spark runs a plan twice: each row is called twice, unless its results are stored first."""

from __future__ import annotations

import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from tests.entry_points import COLUMN_AND_ROWS, with_answer
from tests.service import Service

ROWS = 40
SORTS: dict[str, Callable[[DataFrame], DataFrame]] = {
    "orderBy": lambda df: df.orderBy("answer"),
    "repartitionByRange": lambda df: df.repartitionByRange(2, "answer"),
}


@pytest.fixture
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[DataFrame], DataFrame]:
    """One of the ways to store the rows of a DataFrame."""

    def write(df: DataFrame) -> DataFrame:
        df.write.parquet(str(tmp_path / "answers"))
        return df.sparkSession.read.parquet(str(tmp_path / "answers"))

    return write if request.param == "write" else operator.methodcaller(request.param)


@pytest.mark.thorough
@pytest.mark.parametrize(("sort", "entry_point"), [("orderBy", "unordered"), ("repartitionByRange", "column")])
def test_a_sort_samples_its_input_and_each_row_is_called_twice(
    spark: SparkSession, service: Service, sort: str, entry_point: str
) -> None:
    out = SORTS[sort](with_answer(spark.range(0, ROWS, 1, 4), entry_point, service.client.ask)).collect()
    assert len(out) == ROWS
    assert len(service.calls) == 2 * ROWS


@pytest.mark.parametrize(
    ("stored", "sort", "entry_point"),
    [
        ("localCheckpoint", "orderBy", "unordered"),
        ("persist", "repartitionByRange", "column"),
        pytest.param("write", "orderBy", "column", marks=pytest.mark.thorough),
    ],
    indirect=["stored"],
)
def test_rows_whose_results_are_stored_first_are_called_once(
    spark: SparkSession, service: Service, stored: Callable[[DataFrame], DataFrame], sort: str, entry_point: str
) -> None:
    out = SORTS[sort](stored(with_answer(spark.range(0, ROWS, 1, 4), entry_point, service.client.ask))).collect()
    assert sorted(row.answer for row in out) == sorted(map(str, range(ROWS)))
    assert sorted(map(int, service.calls)) == list(range(ROWS))


@pytest.mark.variation
def test_a_condition_around_a_column_does_not_filter_its_calls(spark: SparkSession, service: Service) -> None:
    answered = with_answer(spark.range(0, ROWS, 1, 4), "column", service.client.ask)
    out = answered.select(F.when(F.col("id") < 10, F.col("answer")).alias("answer")).collect()
    assert sum(row.answer is not None for row in out) == 10
    assert len(service.calls) == ROWS


@pytest.mark.parametrize(
    ("entry_point", "options", "calls"),
    [
        ("column", {}, ROWS),
        pytest.param("unordered", {}, ROWS, marks=pytest.mark.variation),
        ("column", {"deterministic": True}, 10),
    ],
    ids=str,
)
def test_a_filter_on_an_input_column_drops_rows_after_their_calls(
    spark: SparkSession, service: Service, entry_point: str, options: Any, calls: int
) -> None:
    """Unless Spark may leave calls out."""
    out = with_answer(spark.range(0, ROWS, 1, 4), entry_point, service.client.ask, **options).where("id < 10").collect()
    assert len(out) == 10
    assert len(service.calls) == calls


@pytest.mark.variation
@COLUMN_AND_ROWS
def test_only_rows_that_pass_an_earlier_filter_are_called(
    spark: SparkSession, service: Service, entry_point: str
) -> None:
    numbers = spark.range(0, ROWS, 1, 4)
    answered = with_answer(numbers.where("id < 10"), entry_point, service.client.ask)
    out = answered.unionByName(numbers.where("not (id < 10)"), allowMissingColumns=True).collect()
    assert {row.id: row.answer for row in out} == {n: str(n) if n < 10 else None for n in range(ROWS)}
    assert sorted(map(int, service.calls)) == list(range(10))
