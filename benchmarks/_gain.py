"""Calls with latencies in Spark: their share of perfect scheduling, compared with code written by hand."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import trio
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual alias

from udfs import async_pandas_udf, unordered_wait

from ._by_hand import CAPACITY, TIMEOUT, Latency, blocking_call, gathered, pooled, sleeping, sliding_loop
from ._enriching import BATCH, seconds_to_run
from ._latencies import seconds_of, steady_seconds_of
from ._loops import worker_loop
from ._report import Line, Section
from ._rounds import in_words, measure, wall_seconds
from ._timer import sleep

__all__ = ["gain", "greedy_seconds"]

SIZES = {"gain": (100, 1_000, 10_000), "steady": (100, 1_000)}  # of Arrow batches, by workload
CONCURRENCY = "spark.sql.execution.pythonUDF.arrow.concurrency.level"
WARM_UP = 10 * CAPACITY  # rows
ADDED = "answer long"

Enrich = Callable[[DataFrame], DataFrame]


@dataclass(frozen=True, slots=True)
class Workload:
    """The latencies of the calls, with a name for the sections and words for their notes."""

    name: str
    title: str
    notes: str
    seconds_of: Latency


WORKLOADS = (
    Workload("gain", "Gain", "1 % of the calls take a second, the others 20 ms on average", seconds_of),
    Workload("steady", "Gain without stragglers", "calls of 10 to 30 ms, 20 ms on average", steady_seconds_of),
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
    """A table for each workload and size of Arrow batches: wall time, and share of perfect scheduling."""
    cases = [(each, size) for each in WORKLOADS for size in SIZES[each.name]]
    return [_measured(spark, each, size, quick=quick, on_step=on_step) for each, size in cases]


def _measured(
    spark: SparkSession, workload: Workload, size: int, *, quick: bool, on_step: Callable[[], object]
) -> Section:
    rows, rounds = (2_000, 1) if quick else (20_000, 3)
    if size == 100 and workload is WORKLOADS[0]:
        rounds = 1  # a round takes seven minutes: each of the barriers waits for a straggler
    spark.conf.set(BATCH, size)
    spark.conf.set(CONCURRENCY, CAPACITY)
    jobs = {}
    for name, enrich in contenders(workload.seconds_of).items():
        seconds_to_run(enrich(numbers(spark, WARM_UP)))
        jobs[name] = partial(seconds_to_run, enrich(numbers(spark, rows)))
    loop = partial(trio.run, worker_loop, partial(call, workload.seconds_of), rows, CAPACITY, TIMEOUT)
    jobs["bare worker loop, without Spark"] = partial(wall_seconds, loop)
    measured = measure(jobs, rounds, on_step, warm_up=False)
    section = Section(
        f"{workload.title}: calls in Spark, Arrow batches of {size:,} rows",
        f"{workload.notes}, capacity {CAPACITY}, one task, {rows:,} rows; wall time, {in_words(rounds)}. "
        "Perfect: each slot takes the next call as it becomes free, simulated with these latencies; `from` "
        "and `to` are the worst and the best round. The threads have no timeout",
        {"seconds": "{:.2f}", "of perfect": "{:.1%}", "from": "{:.1%}", "to": "{:.1%}"},
        name=f"{workload.name} {size}",
    )
    perfect, alone = (greedy_seconds(rows, workload.seconds_of, capacity) for capacity in (CAPACITY, 1))
    section.lines.append(Line("one call at a time, computed", {"seconds": alone, "of perfect": perfect / alone}))
    for name, times in measured.numbers.items():
        seconds = measured.median(name)
        values = {
            "seconds": seconds,
            "of perfect": perfect / seconds,
            "from": perfect / max(times),
            "to": perfect / min(times),
        }
        section.lines.append(Line(name, values))
    return section


def numbers(spark: SparkSession, rows: int) -> DataFrame:
    """Rows with a column `id`, in one partition."""
    return spark.range(0, rows, 1, 1)


def contenders(seconds_of: Latency) -> dict[str, Enrich]:
    """All ways to add the answers in Spark, by name."""
    ours = partial(call, seconds_of)
    column = async_pandas_udf(ours, "long", timeout=TIMEOUT, capacity=CAPACITY)
    level: Any = F.udf(partial(blocking_call, seconds_of), "long", useArrow=True)
    client = partial(sleeping, seconds_of)
    by_hand = {
        "asyncio.gather per batch": partial(gathered, client),
        "threads in mapInPandas": partial(pooled, seconds_of),
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
