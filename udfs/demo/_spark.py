"""The Spark session of the demo, its flights, and what is done with them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

import udfs
from trio_asyncio_io import transient
from udfs import ExponentialBackoff

from ._data import flights_csv, weather_csv
from ._facts import SCHEMA, FlightFacts

__all__ = ["Job", "delay_by_weather", "flights", "problems_of", "read_flights", "session", "stream_flights"]

FLIGHT = (
    "year int, month int, day int, dep_time int, sched_dep_time int, dep_delay double, arr_time int, "
    "sched_arr_time int, arr_delay double, carrier string, flight int, tailnum string, origin string, dest string, "
    "air_time double, distance double, hour int, minute int, time_hour string"
)
PARTITIONS = 4


@dataclass(frozen=True, slots=True)
class Job:
    """What the demo is asked to do.

    Attributes:
        mode: "ordered" or "unordered".
        capacity: Calls in flight in each running task.
        timeout: Seconds for each flight's lookups, retries included.
        full: All of 2013 instead of January.
        rows: Most flights, or None.
    """

    mode: Literal["ordered", "unordered"] = "unordered"
    capacity: int = 200
    timeout: float = 10.0
    full: bool = False
    rows: int | None = None

    def enrich(self, df: DataFrame, url: str, **more: Any) -> DataFrame:
        """The flights with their weather and their aircraft: the line that this project is about."""
        options: dict[str, Any] = {
            "inputs": ["origin", "time_hour", "tailnum"],
            "capacity": self.capacity,
            "timeout": self.timeout,
            "retry": ExponentialBackoff(4, initial=0.05, maximum=1.0, retry_on=transient),
            "on_error": "column",
            **more,
        }
        facts = FlightFacts(url, connections=self.capacity)
        if self.mode == "ordered":
            return udfs.ordered_wait(df, facts, SCHEMA, **options)
        return udfs.unordered_wait(df, facts, SCHEMA, event_time="scheduled", max_out_of_orderness="2 hours", **options)


@contextmanager
def session() -> Iterator[SparkSession]:
    """A local Spark session on two cores, quiet, with this very Python for its workers."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    log = Path(__file__).with_name("log4j2.properties")
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("trio-asyncio-io demo")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={log.as_uri()}")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", str(PARTITIONS))
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "1000")
        .getOrCreate()
    )
    try:
        yield spark
    finally:
        spark.stop()


def read_flights(spark: SparkSession, path: str) -> DataFrame:
    """The flights of a CSV file, or of a folder of them, with their scheduled hour."""
    df = spark.read.csv(path, schema=FLIGHT, header=True, nullValue="NA")
    return df.withColumn("scheduled", F.to_timestamp("time_hour"))


def stream_flights(spark: SparkSession, path: str) -> DataFrame:
    """The same as a stream of the files that arrive in a folder, one to a micro-batch."""
    reader = spark.readStream.option("maxFilesPerTrigger", 1)
    df = reader.csv(path, schema=FLIGHT, header=True, nullValue="NA")
    return df.withColumn("scheduled", F.to_timestamp("time_hour"))


def flights(spark: SparkSession, job: Job, directory: Path) -> DataFrame:
    """The flights that the job is about, in the order of their scheduled hour within each partition."""
    df = read_flights(spark, str(flights_csv(directory)))
    if not job.full:
        df = df.where("month = 1")
    if job.rows is not None:
        df = df.limit(job.rows)
    return df.repartitionByRange(PARTITIONS, "scheduled").sortWithinPartitions("scheduled").cache()


def problems_of(spark: SparkSession, before: DataFrame, after: DataFrame) -> list[str]:
    """What is wrong with the enriched flights, in words: nothing, one hopes.

    Every flight must be there once, with all its columns as they were, and must have the weather that the
    source has for it, unless it says itself that its lookup failed.
    """
    problems = []
    came_out = after.select(before.columns)
    if lost := before.exceptAll(came_out).count():
        problems.append(f"{lost} flights did not come out as they went in")
    if extra := came_out.exceptAll(before).count():
        problems.append(f"{extra} flights came out that did not go in")
    source = spark.read.csv(str(weather_csv()), header=True, nullValue="NA", inferSchema=False)
    names = ("temp", "wind_speed", "precip", "visib")
    right = source.select("origin", "time_hour", *(F.col(name).cast("double").alias(f"true_{name}") for name in names))
    same = " and ".join(f"{name} <=> true_{name}" for name in names)
    joined = after.where("error is null").join(right, ["origin", "time_hour"], "left")
    if wrong := joined.where(f"not ({same})").count():
        problems.append(f"{wrong} flights have other weather than the source")
    return problems


def delay_by_weather(after: DataFrame) -> list[Any]:
    """Rows of (weather, flights, mean departure delay in minutes, share later than half an hour), worst first.

    Fog and haze are a visibility below 3 miles; windy is 20 miles an hour and more.
    """
    weather = (
        F.when(F.col("temp").isNull() & F.col("visib").isNull(), "no observation")
        .when((F.col("precip") > 0) & (F.col("temp") <= 32), "snow, ice")  # noqa: PLR2004 - Fahrenheit
        .when(F.col("precip") > 0, "rain")
        .when(F.col("visib") < 3, "fog, haze")  # noqa: PLR2004
        .when(F.col("wind_speed") >= 20, "windy, dry")  # noqa: PLR2004
        .otherwise("calm, dry")
    )
    late = F.avg((F.col("dep_delay") > 30).cast("double"))  # noqa: PLR2004 - minutes
    table = after.where("dep_delay is not null").groupBy(weather.alias("weather"))
    return table.agg(F.count("*"), F.avg("dep_delay"), late).orderBy(F.desc(F.avg("dep_delay"))).collect()
