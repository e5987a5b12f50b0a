"""The enriching: what a column UDF costs in Spark, and what it gains, in one session."""

from __future__ import annotations

import asyncio
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
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it
from pyspark.sql.functions import pandas_udf  # type: ignore[attr-defined]  # it is there

import udfs.demo
from udfs import async_pandas_udf, unordered_wait

from ._gauge import Gauge
from ._latencies import mean_latency, seconds_of
from ._overhead import with_operator
from ._report import Line, Section
from ._rounds import measure

__all__ = ["cost", "gain"]

CAPACITY = 100
BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"
BATCHES = (1_000, 10_000)
FORMATS = {"batches of": "{:.1f} s", "share,": "{:.0%}"}
GAUGE = Gauge()  # of the worker process

Enrich = Callable[[DataFrame], DataFrame]


@contextmanager
def session() -> Iterator[SparkSession]:
    """A local session that says nothing, with this very Python for its workers."""
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
    """The plainest UDF there is: what goes in comes out."""
    yield from batches


async def identity(number: int) -> int:
    """The same, async."""
    return number


def gathered(batches: Iterator[pd.Series]) -> Iterator[pd.Series]:
    """What people write by hand: one `asyncio.gather` for each Arrow batch."""
    for batch in batches:
        yield pd.Series(asyncio.run(_gather(batch)))


async def _gather(batch: pd.Series) -> list[int]:
    slots = asyncio.Semaphore(CAPACITY)

    async def one(number: int) -> int:
        async with slots, asyncio.timeout(5.0):
            with GAUGE:
                in_flight = GAUGE.running
                await asyncio.sleep(seconds_of(number))
                return in_flight

    return await asyncio.gather(*(one(int(number)) for number in batch))


async def call(number: int) -> int:
    """A call with a latency. Gives how many are in flight in this worker, so that the most can be told."""
    with GAUGE:
        in_flight = GAUGE.running
        await trio.sleep(seconds_of(number))
        return in_flight


def cost(spark: SparkSession, *, quick: bool, on_step: Callable[[], object]) -> Section:
    """Wall time per row of an identity over the bridge, beside a plain iterator pandas UDF and the operator alone."""
    rows, rounds = (50_000, 3) if quick else (200_000, 15)
    df = spark.range(0, rows, 1, 1)
    theirs = pandas_udf(plain, "long")
    ours = async_pandas_udf(identity, "long", timeout=5.0)
    enriched: dict[str, DataFrame] = {
        "no UDF": df.select((F.col("id") + 1).alias("result")),
        "iterator pandas UDF": df.select(theirs("id").alias("result")),
        "async_pandas_udf": df.select(ours("id").alias("result")),
        "unordered_wait": unordered_wait(df, identity, "result long", inputs=["id"], timeout=5.0),
    }
    contenders: dict[str, Callable[[], float]] = {name: partial(_seconds, each) for name, each in enriched.items()}
    contenders["the operator alone"] = partial(_operator_seconds, rows)
    measured = measure(contenders, rounds, on_step)
    section = Section(
        "Cost: an identity UDF in Spark, one task, Arrow batches of 10,000 rows",
        f"wall time, median of {rounds} alternating rounds of {rows:,} rows, session and worker warm",
        {"μs/row": "{:.2f}"},
    )
    section.lines.extend(Line(name, {"μs/row": measured.median(name) / rows * 1e6}) for name in contenders)
    return section


def gain(spark: SparkSession, *, quick: bool, on_step: Callable[[], object]) -> Section:
    """Wall time of calls with latencies: a gather per Arrow batch, and ours."""
    rows, rounds = (4_000, 1) if quick else (20_000, 3)
    df = spark.range(0, rows, 1, 1)
    ideal = rows * mean_latency(rows) / CAPACITY
    theirs = pandas_udf(gathered, "long")
    ours = async_pandas_udf(call, "long", timeout=5.0, capacity=CAPACITY)
    contenders: dict[str, Enrich] = {
        "asyncio.gather per batch": lambda df: df.select(theirs("id").alias("result")),
        "async_pandas_udf": lambda df: df.select(ours("id").alias("result")),
        "unordered_wait": lambda df: unordered_wait(
            df, call, "result long", inputs=["id"], timeout=5.0, capacity=CAPACITY
        ),
    }
    section = Section(
        f"Gain: {rows:,} calls in Spark, 20 ms mean, 1 % at one second, capacity {CAPACITY}, one task",
        f"wall time, median of {rounds} alternating rounds; share of Little's law, which allows {ideal:.2f} s",
        {
            f"{what} {size:,}": form
            for size in BATCHES
            for what, form in (("batches of", "{:.1f} s"), ("share,", "{:.0%}"))
        },
    )
    values: dict[str, dict[str, float | None]] = {name: {} for name in contenders}
    for size in BATCHES:
        spark.conf.set(BATCH, size)
        measured = measure({name: partial(_seconds, each(df)) for name, each in contenders.items()}, rounds, on_step)
        for name in contenders:
            seconds = measured.median(name)
            values[name] |= {f"batches of {size:,}": seconds, f"share, {size:,}": ideal / seconds}
    few = df.limit(10 * CAPACITY)
    section.lines.extend(Line(name, values[name], _peak(each(few))) for name, each in contenders.items())
    return section


def _seconds(df: DataFrame) -> float:
    began = time.perf_counter()
    df.write.format("noop").mode("append").save()
    return time.perf_counter() - began


def _operator_seconds(rows: int) -> float:
    began = time.perf_counter()
    trio.run(with_operator, identity, rows, CAPACITY, 5.0)
    return time.perf_counter() - began


def _peak(df: DataFrame) -> int:
    most: Any = df.agg(F.max("result")).first()
    return int(most[0])
