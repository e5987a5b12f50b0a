"""The demo's Spark session and its queries: read the flights, enrich them, check them, analyse them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

import udfs
from trio_asyncio_io import Observer, transient
from udfs import ExponentialBackoff

from ._data import flights_csv, weather_csv
from ._facts import SCHEMA, FlightFacts

__all__ = [
    "JANUARY",
    "YEAR",
    "Job",
    "delay_by_weather",
    "flights",
    "problems_of",
    "read_flights",
    "session",
    "stream_flights",
]

FLIGHT = (
    "year int, month int, day int, dep_time int, sched_dep_time int, dep_delay double, arr_time int, "
    "sched_arr_time int, arr_delay double, carrier string, flight int, tailnum string, origin string, dest string, "
    "air_time double, distance double, hour int, minute int, time_hour string"
)
PARTITIONS = 4

# In days
JANUARY = 31
YEAR = 365


@dataclass(frozen=True, slots=True)
class Job:
    """Which flights the demo enriches, and how.

    Attributes:
        mode: "ordered" or "unordered".
        capacity: The limit of flights that each task looks up at once.
        timeout: Seconds for each flight's lookups, retries included.
        days: The number of days, from 1 January 2013.
        rows: The limit of flights, or None.
    """

    mode: Literal["ordered", "unordered"] = "unordered"
    capacity: int = 200
    timeout: float = 10.0
    days: int = JANUARY
    rows: int | None = None

    @property
    def end(self) -> date:
        """The first day that is not included."""
        return date(2013, 1, 1) + timedelta(days=self.days)

    def enrich(
        self,
        df: DataFrame,
        url: str,
        *,
        shared: bool = True,
        metrics: str | None = None,
        observer: Observer | None = None,
    ) -> DataFrame:
        """The flights with their weather and their aircraft.

        Args:
            df: The flights.
            url: The URL of the service.
            shared: Whether equal lookups share one request and its cached response.
            metrics, observer: As in `udfs.ordered_wait`.
        """
        options: dict[str, Any] = {
            "inputs": ["origin", "time_hour", "tailnum"],
            "capacity": self.capacity,
            "timeout": self.timeout,
            "retry": ExponentialBackoff(4, initial=0.05, maximum=1.0, retry_on=transient),
            "on_error": "column",
            "metrics": metrics,
            "observer": observer,
        }
        facts = FlightFacts(url, connections=self.capacity, shared=shared)
        if self.mode == "ordered":
            return udfs.ordered_wait(df, facts, SCHEMA, **options)
        return udfs.unordered_wait(df, facts, SCHEMA, event_time="scheduled", max_out_of_orderness="2 hours", **options)


@contextmanager
def session() -> Iterator[SparkSession]:
    """A local Spark session with two cores, which logs errors only. Its workers run this Python."""
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
    """The flights of a CSV file, or of a folder of such files, with the scheduled hour as a timestamp."""
    df = spark.read.csv(path, schema=FLIGHT, header=True, nullValue="NA")
    return df.withColumn("scheduled", F.to_timestamp("time_hour"))


def stream_flights(spark: SparkSession, path: str) -> DataFrame:
    """The same as a stream of the files that arrive in a folder, one file per micro-batch."""
    reader = spark.readStream.option("maxFilesPerTrigger", 1)
    df = reader.csv(path, schema=FLIGHT, header=True, nullValue="NA")
    return df.withColumn("scheduled", F.to_timestamp("time_hour"))


def flights(spark: SparkSession, job: Job, directory: Path) -> DataFrame:
    """The flights of the job, cached, ordered by scheduled hour across and within partitions."""
    df = read_flights(spark, str(flights_csv(directory)))
    if job.days < YEAR:
        df = df.where(F.make_date("year", "month", "day") < F.lit(job.end))
    if job.rows is not None:
        df = df.limit(job.rows)
    return df.repartitionByRange(PARTITIONS, "scheduled").sortWithinPartitions("scheduled").cache()


def problems_of(spark: SparkSession, before: DataFrame, after: DataFrame) -> list[str]:
    """Descriptions of what is wrong with the enriched flights; empty if nothing is.

    Every flight must come out once with its columns unchanged, and with the weather of the source data unless its
    `error` column reports a failed lookup.
    """
    problems = []
    missing, unexpected = _differences(before, after.select(before.columns))
    if missing:
        problems.append(f"{missing} flights are missing or were changed")
    if unexpected:
        problems.append(f"{unexpected} flights came out that did not go in")
    source = spark.read.csv(str(weather_csv()), header=True, nullValue="NA", inferSchema=False)
    names = ("temp", "wind_speed", "precip", "visib")
    true = source.select("origin", "time_hour", *(F.col(name).cast("double").alias(f"true_{name}") for name in names))
    is_same = " and ".join(f"{name} <=> true_{name}" for name in names)
    joined = after.where("error is null").join(true, ["origin", "time_hour"], "left")
    if wrong := joined.where(f"not ({is_same})").count():
        problems.append(f"{wrong} flights have weather that differs from the source data")
    return problems


def _differences(before: DataFrame, after: DataFrame) -> tuple[int, int]:
    """The rows that only `before` has, and the rows that only `after` has. A duplicate is a row of its own."""
    sides = before.withColumn("surplus", F.lit(1)).union(after.withColumn("surplus", F.lit(-1)))
    surplus = sides.groupBy(before.columns).agg(F.sum("surplus").alias("surplus"))
    sums = surplus.select(F.sum(F.greatest("surplus", F.lit(0))), F.sum(F.greatest(-F.col("surplus"), F.lit(0))))
    [(missing, unexpected)] = sums.collect()
    return missing or 0, unexpected or 0


def delay_by_weather(after: DataFrame) -> list[Any]:
    """Rows of (weather, flights, mean departure delay in minutes, share with more than 30 minutes), worst first.

    Fog and haze mean a visibility below 3 miles, windy means 20 miles per hour or more.
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
