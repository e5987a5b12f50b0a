"""The check that compares enriched flights with the source data, which Spark joins here."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

from udfs.demo import __main__ as demo
from udfs.demo._flights import planes_csv, weather_csv

pytestmark = pytest.mark.spark

HEADER = "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,flight,tailnum,"
HEADER += "origin,dest,air_time,distance,hour,minute,time_hour"
FLIGHTS = [
    "2013,1,1,517,515,2,830,819,11,UA,1545,N14228,EWR,IAH,227,1400,5,15,2013-01-01T10:00:00Z",
    "2013,1,1,533,529,4,850,830,20,UA,1714,N24211,LGA,IAH,227,1416,5,29,2013-01-01T10:00:00Z",
    "2013,1,1,,529,,,830,,AA,1715,NA,LGA,IAH,,1416,5,29,2013-12-31T10:00:00Z",
]


@pytest.fixture(scope="module")
def flights(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    path: Path = tmp_path_factory.mktemp("flights") / "flights.csv"
    path.write_text("\n".join([HEADER, *FLIGHTS]))
    return demo.read_flights(spark, path).cache()


@pytest.fixture(scope="module")
def enriched(spark: SparkSession, flights: DataFrame) -> DataFrame:
    weather = spark.read.csv(str(weather_csv()), header=True, nullValue="NA").withColumnRenamed("year", "_")
    planes = spark.read.csv(str(planes_csv()), header=True, nullValue="NA")
    joined = flights.join(weather.select("origin", "time_hour", *demo.ADDED_NAMES[:4]), ["origin", "time_hour"], "left")
    joined = joined.join(planes.select("tailnum", *demo.ADDED_NAMES[4:]), "tailnum", "left")
    typed = [F.expr(f"cast({column.replace(' ', ' as ')}) as {column.split()[0]}") for column in demo.ADDED.split(", ")]
    return joined.select(*flights.columns, *typed, F.lit(None).cast("string").alias("error")).cache()


@pytest.mark.variation
def test_flights_as_in_the_source_data_have_no_problem(
    spark: SparkSession, flights: DataFrame, enriched: DataFrame
) -> None:
    assert [row.temp for row in enriched.orderBy("flight").collect()] == [39.02, 39.92, None]
    assert demo.check(spark, flights, enriched) == []


@pytest.mark.parametrize(
    ("change", "problems"),
    [
        (lambda df: df.withColumn("seats", F.lit(1)), [demo.LOST.format(3), demo.WRONG.format(3)]),
        (lambda df: df.withColumn("dest", F.lit("LAX")), [demo.LOST.format(3), demo.WRONG.format(3)]),
    ],
    ids=["another aircraft", "another flight"],
)
def test_each_difference_is_a_problem(
    spark: SparkSession, flights: DataFrame, enriched: DataFrame, change: object, problems: list[str]
) -> None:
    assert callable(change)
    assert demo.check(spark, flights, change(enriched)) == problems
