"""Calls in flight of two operators in one plan, by the size of Arrow batches."""

from __future__ import annotations

import time
from collections.abc import Callable

from pyspark.sql import SparkSession

from udfs import ordered_wait

from ._enriching import BATCH
from ._report import Line, Section
from ._timer import sleep

CAPACITY = 400  # of each operator
SECONDS = 0.5  # of a call
SIZES = {
    "default settings": 10_000,
    "batches of 100 rows": 100,
    "batches of 10 rows": 10,
}


async def call(number: int) -> tuple[float, float]:
    """A call with a latency. Returns its start and its end, because two processes make the calls."""
    began = time.time()
    await sleep(SECONDS)
    return began, time.time()


def two_operators(spark: SparkSession, *, quick: bool, on_step: Callable[[], object]) -> list[Section]:
    """The mean number of calls in flight from the first call to the end of the last one."""
    rows = 4_000 if quick else 24_000
    section = Section(
        f"Two operators in one plan: calls of {SECONDS:g} s, a capacity of {CAPACITY} each, {rows:,} rows in one task",
        f"calls in flight, on average from the first call to the end of the last one; one round. Batches: `{BATCH}`",
        {"in flight": "{:.0f}", "of possible": "{:.0%}"},
        name="two operators",
    )
    for name, size in SIZES.items():
        spark.conf.set(BATCH, size)
        in_flight = _in_flight(spark, rows)
        on_step()
        section.lines.append(Line(name, {"in flight": in_flight, "of possible": in_flight / (2 * CAPACITY)}))
    return [section]


def _in_flight(spark: SparkSession, rows: int) -> float:
    df = spark.range(0, rows, 1, 1)
    for stage in ("first", "second"):
        added = f"began_{stage} double, ended_{stage} double"
        df = ordered_wait(df, call, added, inputs=["id"], timeout=60.0, capacity=CAPACITY)
    calls: list[tuple[float, float]] = [(row[at], row[at + 1]) for row in df.collect() for at in (1, 3)]
    span: float = max(ended for _, ended in calls) - min(began for began, _ in calls)
    return sum(ended - began for began, ended in calls) / span
