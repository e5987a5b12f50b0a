"""Spark: the cost of a row, and the session of the benchmarks."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import trio
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual alias
from pyspark.sql.functions import pandas_udf  # type: ignore[attr-defined]  # exists at run time

import udfs.demo
from udfs import async_pandas_udf, unordered_wait

from ._contenders import with_operator
from ._report import Line, Section
from ._rounds import measure, wall_seconds

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


def _jobs() -> dict[str, Callable[[DataFrame], DataFrame]]:
    theirs: Any = pandas_udf(plain, "long")
    ours = async_pandas_udf(identity, "long", timeout=5.0)
    return {
        "iterator pandas UDF": lambda df: df.select(theirs("id")),
        "async_pandas_udf": lambda df: df.select(ours("id")),
        "unordered_wait": lambda df: unordered_wait(df, identity, "result long", inputs=["id"], timeout=5.0),
    }


def cost(spark: SparkSession, *, quick: bool, on_step: Callable[[], object]) -> list[Section]:
    """Wall time per row of an identity UDF, compared with a pandas UDF and with the operator without Spark."""
    rows, rounds = (20_000, 3) if quick else (200_000, 15)
    df = spark.range(0, rows, 1, 1)
    contenders = {"no UDF": partial(seconds_to_run, df.select(F.col("id") + 1))}
    contenders |= {name: partial(seconds_to_run, job(df)) for name, job in _jobs().items()}
    alone = partial(trio.run, with_operator, identity, rows, CAPACITY, 5.0)
    measured = measure({**contenders, "the operator alone": partial(wall_seconds, alone)}, rounds, on_step)
    section = Section(
        "Cost: an identity UDF in Spark, one task, Arrow batches of 10,000 rows",
        f"wall time, median of {rounds} alternating rounds of {rows:,} rows, session and worker warm",
        {"μs/row": "{:.2f}"},
        name="cost",
    )
    section.lines.extend(Line(name, {"μs/row": measured.median(name) / rows * 1e6}) for name in measured.numbers)
    return [section]


def seconds_to_run(df: DataFrame) -> float:
    """Wall time of a job that reads all rows and stores none."""
    return wall_seconds(df.write.format("noop").mode("append").save)
