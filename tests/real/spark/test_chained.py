"""Several operators in a row, each with its own column of errors; and a stream into two tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from tests.support import PATIENCE
from udfs import ordered_wait, unordered_wait

FAILS = {"locate": 1, "weather": 2, "describe": 3}


async def locate(id: int) -> dict[str, float]:  # noqa: A002 - the name of the column
    if id == FAILS["locate"]:
        raise LookupError("no such place")
    return {"lat": 40.0 + id, "lon": -74.0}


async def weather(lat: float, lon: float) -> float:
    if lat == 40.0 + FAILS["weather"]:
        raise ConnectionError("the service is down")
    return 39.0


async def describe(id: int, temp: float) -> str:  # noqa: A002 - the name of the column
    if id == FAILS["describe"]:
        raise TimeoutError("too late")
    return f"{id}: {temp}"


def test_three_operators_in_a_row_have_an_error_column_each(spark: SparkSession) -> None:
    df = spark.range(0, 5, 1, 2)
    for wait, function, schema, error in (
        (ordered_wait, locate, "lat double, lon double", "locate_error"),
        (unordered_wait, weather, "temp double", "weather_error"),
        (ordered_wait, describe, "text string", "error"),
    ):
        df = wait(df, function, schema, timeout=PATIENCE, skip_nulls=True, on_error="column", error=error)
    assert df.columns == ["id", "lat", "lon", "locate_error", "temp", "weather_error", "text", "error"]
    rows = df.select("id", "text", "locate_error.type", "weather_error.type", "error.type").orderBy("id").collect()
    assert [tuple(row) for row in rows] == [
        (0, "0: 39.0", None, None, None),
        (1, None, "LookupError", None, None),
        (2, None, None, "ConnectionError", None),
        (3, None, None, None, "TimeoutError"),
        (4, "4: 39.0", None, None, None),
    ]


@pytest.mark.variation
def test_a_repeated_micro_batch_replaces_its_results_and_its_dead_letters(spark: SparkSession, tmp_path: Path) -> None:
    """As the page on dead letters does it: each micro-batch has a folder of its own in both tables."""
    numbers: list[int] = []

    def write(rows: DataFrame, number: int) -> None:
        numbers.append(number)
        enriched = ordered_wait(rows, locate, "lat double, lon double", timeout=PATIENCE, on_error="column")
        stored = enriched.localCheckpoint()
        good, dead = stored.where("error is null").drop("error"), stored.where("error is not null")
        good.select("id", "lat").write.mode("overwrite").parquet(f"{tmp_path}/good/batch={number}")
        dead.select("id", "error.type").write.mode("overwrite").parquet(f"{tmp_path}/dead/batch={number}")

    def run() -> tuple[list[Row], list[Row]]:
        stream = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).json(f"{tmp_path}/incoming")
        query = stream.writeStream.foreachBatch(write).option("checkpointLocation", f"{tmp_path}/checkpoint")
        assert query.trigger(availableNow=True).start().awaitTermination(PATIENCE)
        good, dead = (spark.read.parquet(f"{tmp_path}/{name}") for name in ("good", "dead"))
        return sorted(good.select("id").collect()), sorted(dead.select("id", "type").collect())

    for first in (0, 1):
        spark.range(first, first + 2, 1, 1).write.mode("append").json(f"{tmp_path}/incoming")
    assert run() == ([Row(id=0), Row(id=2)], [Row(id=1, type="LookupError")] * 2)
    for name in ("1", ".1.crc"):  # as if the driver had died in it
        (tmp_path / "checkpoint" / "commits" / name).unlink()
    assert run() == ([Row(id=0), Row(id=2)], [Row(id=1, type="LookupError")] * 2)
    assert numbers == [0, 1, 1]
