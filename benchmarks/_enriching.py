"""Cost per row of an async UDF in Spark, and the session of the benchmarks."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pandas as pd
import trio
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual alias
from pyspark.sql.functions import pandas_udf  # type: ignore[attr-defined]  # exists at run time

import udfs.demo
from udfs import async_pandas_udf, unordered_wait

from ._overhead import with_operator
from ._report import Line, Section
from ._rounds import measure

__all__ = ["BATCH", "cost", "seconds_to_run", "session"]

CAPACITY = 100
BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"


@contextmanager
def session() -> Iterator[SparkSession]:
    """A local session that logs nothing, with this Python for its workers."""
    quiet = Path(udfs.demo.__path__[0], "log4j2.properties")
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={quiet.as_uri()}")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    try:
        yield spark
    finally:
        spark.stop()


def plain(batches: Iterator[pd.Series]) -> Iterator[pd.Series]:
    """The simplest UDF: returns its input."""
    yield from batches


async def identity(number: int) -> int:
    """The same as an async function."""
    return number


def cost(spark: SparkSession, *, quick: bool, on_step: Callable[[], object]) -> Section:
    """Wall time per row of an identity UDF, compared with a pandas UDF and with the operator without Spark."""
    rows, rounds = (20_000, 3) if quick else (200_000, 15)
    df = spark.range(0, rows, 1, 1)
    theirs = pandas_udf(plain, "long")
    ours = async_pandas_udf(identity, "long", timeout=5.0)
    enriched: dict[str, DataFrame] = {
        "no UDF": df.select((F.col("id") + 1).alias("result")),
        "iterator pandas UDF": df.select(theirs("id").alias("result")),
        "async_pandas_udf": df.select(ours("id").alias("result")),
        "unordered_wait": unordered_wait(df, identity, "result long", inputs=["id"], timeout=5.0),
    }
    contenders: dict[str, Callable[[], float]] = {
        name: partial(seconds_to_run, each) for name, each in enriched.items()
    }
    contenders["the operator alone"] = partial(_operator_seconds, rows)
    measured = measure(contenders, rounds, on_step)
    section = Section(
        "Cost: an identity UDF in Spark, one task, Arrow batches of 10,000 rows",
        f"wall time, median of {rounds} alternating rounds of {rows:,} rows, session and worker warm",
        {"μs/row": "{:.2f}"},
        name="cost",
    )
    section.lines.extend(Line(name, {"μs/row": measured.median(name) / rows * 1e6}) for name in contenders)
    return section


def seconds_to_run(df: DataFrame) -> float:
    """Wall time of a job that reads all rows and stores none."""
    began = time.perf_counter()
    df.write.format("noop").mode("append").save()
    return time.perf_counter() - began


def _operator_seconds(rows: int) -> float:
    began = time.perf_counter()
    trio.run(with_operator, identity, rows, CAPACITY, 5.0)
    return time.perf_counter() - began
