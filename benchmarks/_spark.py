"""Spark: the session of the benchmarks, the cost of a row, and the calls in flight of two operators in one plan."""

from __future__ import annotations

import os
import sys
import time
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
from udfs import async_pandas_udf, ordered_wait, unordered_wait

from ._contenders import with_operator
from ._report import Line, Section
from ._rounds import measure, wall_seconds
from ._timer import sleep

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


def seconds_to_run(df: DataFrame) -> float:
    """Wall time of a job that reads all rows and stores none."""
    return wall_seconds(df.write.format("noop").mode("append").save)


# The cost of a row


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


# Two operators in one plan

SLOTS = 400  # of each operator
SECONDS = 0.5  # of a call
SIZES = {
    "default settings": 10_000,
    "batches of 100 rows": 100,
    "batches of 10 rows": 10,
}


async def timed_call(number: int) -> tuple[float, float]:
    """A call with a latency. Returns its start and its end, because two processes make the calls."""
    began = time.time()
    await sleep(SECONDS)
    return began, time.time()


def two_operators(spark: SparkSession, *, quick: bool, on_step: Callable[[], object]) -> list[Section]:
    """The mean number of calls in flight from the first call to the end of the last one."""
    rows = 4_000 if quick else 24_000
    section = Section(
        f"Two operators in one plan: calls of {SECONDS:g} s, a capacity of {SLOTS} each, {rows:,} rows in one task",
        f"calls in flight, on average from the first call to the end of the last one; one round. Batches: `{BATCH}`",
        {"in flight": "{:.0f}", "of possible": "{:.0%}"},
        name="two operators",
    )
    for name, size in SIZES.items():
        spark.conf.set(BATCH, size)
        in_flight = _in_flight(spark, rows)
        on_step()
        section.lines.append(Line(name, {"in flight": in_flight, "of possible": in_flight / (2 * SLOTS)}))
    return [section]


def _in_flight(spark: SparkSession, rows: int) -> float:
    df = spark.range(0, rows, 1, 1)
    for stage in ("first", "second"):
        added = f"began_{stage} double, ended_{stage} double"
        df = ordered_wait(df, timed_call, added, inputs=["id"], timeout=60.0, capacity=SLOTS)
    calls: list[tuple[float, float]] = [(row[at], row[at + 1]) for row in df.collect() for at in (1, 3)]
    span: float = max(ended for _, ended in calls) - min(began for began, _ in calls)
    return sum(ended - began for began, ended in calls) / span
