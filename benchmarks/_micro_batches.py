"""Durations of micro-batches with one straggler in a hundred calls, with and without a carry-over."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime
from statistics import median
from typing import Any

import trio
from pyspark.sql import DataFrame, SparkSession

from udfs import CarryOver, unordered_wait

from ._report import Line, Section

ROWS = 200  # in a micro-batch
STRAGGLERS = 0.01
MEAN_SECONDS = 0.02
CAPACITY = 100
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def micro_batches(spark: SparkSession, *, quick: bool, on_step: Callable[[], object]) -> list[Section]:
    """The durations of micro-batches."""
    slow, budget, lasts = (3.0, 0.5, 9) if quick else (30.0, 2.0, 65)
    spark.sparkContext.setLogLevel("OFF")  # stopping a query logs an error
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    spark.conf.set("spark.sql.shuffle.partitions", 2)
    call = _call(slow)
    more: dict[str, dict[str, Any]] = {
        "every micro-batch waits": {},
        f"carry_over, budget {budget:g} s": {"carry_over": CarryOver(budget=budget)},
    }
    section = Section(
        f"Micro-batches of {ROWS} calls, {MEAN_SECONDS * 1000:.0f} ms each and {STRAGGLERS:.0%} at {slow:g} s",
        "durations from Spark's progress reports, without the first micro-batch, which starts the workers",
        {"micro-batches": "{:.0f}", "median": "{:.1f} s", "longest": "{:.1f} s", "rows/s": "{:.0f}"},
        name="streaming",
    )
    for name, options in more.items():
        df = spark.readStream.format("rate-micro-batch").options(rowsPerBatch=ROWS, numPartitions=2).load()
        enriched = unordered_wait(
            df, call, "answer long", inputs=["value"], timeout=600.0, capacity=CAPACITY, **options
        )
        section.lines.append(Line(name, _summary(enriched, lasts)))
        on_step()
    return [section]


def _call(slow: float) -> Any:
    async def call(value: int) -> int:
        is_warm = value >= ROWS  # the first micro-batch starts the workers and does not count
        await trio.sleep(slow if is_warm and random.random() < STRAGGLERS else MEAN_SECONDS)
        return value

    return call


def _summary(df: DataFrame, seconds: int) -> dict[str, float]:
    """The micro-batches of a query that runs for these seconds after its first one."""
    query = df.writeStream.format("noop").start()
    try:
        while not query.recentProgress:
            query.awaitTermination(1)
        query.awaitTermination(seconds)
        reports = [each for each in query.recentProgress[1:] if each.numInputRows]
    finally:
        query.stop()
    durations = [each.durationMs["triggerExecution"] / 1000 for each in reports]
    assert durations, f"no micro-batch ended within {seconds} s"
    first, last = (datetime.fromisoformat(each.timestamp).timestamp() for each in (reports[0], reports[-1]))
    return {
        "micro-batches": len(durations),
        "median": median(durations),
        "longest": max(durations),
        "rows/s": len(durations) * ROWS / (last - first + durations[-1]),
    }
