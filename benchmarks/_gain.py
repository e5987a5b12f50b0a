"""Calls with latencies in Spark: their share of perfect scheduling, compared with code written by hand."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual alias

from udfs import async_pandas_udf, unordered_wait

from ._by_hand import CAPACITY, TIMEOUT, Latency, blocking_call, gathered, sleeping, sliding_loop
from ._latencies import seconds_of, steady_seconds_of
from ._report import Line, Section
from ._spark import BATCH, seconds_to_run
from ._timer import sleep

CONCURRENCY = "spark.sql.execution.pythonUDF.arrow.concurrency.level"
WARM_UP = 10 * CAPACITY  # rows
ADDED = "answer long"

Enrich = Callable[[DataFrame], DataFrame]


@dataclass(frozen=True, slots=True)
class Workload:
    """The latencies of the calls, and the sizes of Arrow batches, with words for the section."""

    name: str
    title: str
    notes: str
    seconds_of: Latency
    sizes: tuple[int, ...]


STRAGGLERS = "1 % of the calls take a second, the others 20 ms on average"
STEADY = "calls of 10 to 30 ms, 20 ms on average"
WORKLOADS = (
    Workload("gain", "Gain", STRAGGLERS, seconds_of, (10_000, 1_000, 100)),
    Workload("steady", "Gain without stragglers", STEADY, steady_seconds_of, (1_000, 100)),
)


def greedy_seconds(rows: int, seconds_of: Latency, capacity: int = CAPACITY) -> float:
    """Seconds for all calls, if each slot that becomes free takes the next call at once.

    This includes the last straggler. No schedule that takes the rows in order without knowing the latencies is faster.
    """
    free = [0.0] * min(capacity, rows)
    for number in range(rows):
        heapq.heapreplace(free, free[0] + seconds_of(number))
    return max(free)


async def call(seconds_of: Latency, number: int) -> int:
    """A call with a latency."""
    await sleep(seconds_of(number))
    return number


def gain(spark: SparkSession, *, quick: bool, on_step: Callable[[], object]) -> list[Section]:
    """A table for each workload: the share of perfect scheduling by the size of Arrow batches."""
    rows = 2_000 if quick else 20_000
    return [_section(each, rows, _seconds(spark, each, rows, on_step)) for each in WORKLOADS]


def _seconds(
    spark: SparkSession, workload: Workload, rows: int, on_step: Callable[[], object]
) -> dict[int, dict[str, float]]:
    """Wall time of each contender, by the size of Arrow batches."""
    found: dict[int, dict[str, float]] = {}
    spark.conf.set(CONCURRENCY, CAPACITY)
    for size in workload.sizes:
        spark.conf.set(BATCH, size)
        found[size] = {}
        for name, enrich in contenders(workload.seconds_of).items():
            seconds_to_run(enrich(numbers(spark, WARM_UP)))
            found[size][name] = seconds_to_run(enrich(numbers(spark, rows)))
            on_step()
    return found


def _section(workload: Workload, rows: int, found: dict[int, dict[str, float]]) -> Section:
    columns = {size: f"{size:,} rows" for size in workload.sizes}
    section = Section(
        f"{workload.title}: calls in Spark, as a share of perfect scheduling, by the size of Arrow batches",
        f"{workload.notes}, capacity {CAPACITY}, one task, {rows:,} rows; wall time, one round. "
        "Perfect: each slot takes the next call as it becomes free, simulated with these latencies. Seconds: with "
        "batches of the first size. Spark's threads have no timeout",
        {"seconds": "{:.2f}", **dict.fromkeys(columns.values(), "{:.1%}")},
        name=workload.name,
    )
    perfect, alone = (greedy_seconds(rows, workload.seconds_of, capacity) for capacity in (CAPACITY, 1))
    rates = dict.fromkeys(columns.values(), perfect / alone)
    section.lines.append(Line("one call at a time, computed", {"seconds": alone, **rates}))
    first = found[workload.sizes[0]]
    for name, seconds in first.items():
        rates = {column: perfect / found[size][name] for size, column in columns.items()}
        section.lines.append(Line(name, {"seconds": seconds, **rates}))
    return section


def numbers(spark: SparkSession, rows: int) -> DataFrame:
    """Rows with a column `id`, in one partition."""
    return spark.range(0, rows, 1, 1)


def contenders(seconds_of: Latency) -> dict[str, Enrich]:
    """All ways to add the answers, by name."""
    ours = partial(call, seconds_of)
    column = async_pandas_udf(ours, "long", timeout=TIMEOUT, capacity=CAPACITY)
    level: Any = F.udf(partial(blocking_call, seconds_of), "long", useArrow=True)
    client = partial(sleeping, seconds_of)
    by_hand = {
        "asyncio.gather per batch": partial(gathered, client),
        "sliding window, asyncio": partial(sliding_loop, client),
    }
    return {
        "unordered_wait": lambda df: unordered_wait(df, ours, ADDED, inputs=["id"], timeout=TIMEOUT, capacity=CAPACITY),
        "async_pandas_udf": lambda df: df.withColumn("answer", column("id")),
        "Spark's concurrency.level": lambda df: df.withColumn("answer", level("id")),
    } | {name: partial(in_pandas, each) for name, each in by_hand.items()}


def in_pandas(function: Any, df: DataFrame) -> DataFrame:
    """The rows with answers of code by hand."""
    return df.mapInPandas(function, f"id long, {ADDED}")
