"""Calls with latencies in Spark: their share of perfect scheduling, compared with code written by hand."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Lock
from typing import Any

import pandas as pd
import trio
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual alias
from pyspark.sql.functions import pandas_udf  # type: ignore[attr-defined]  # exists at run time

from udfs import async_pandas_udf, unordered_wait

from ._enriching import BATCH, seconds_to_run
from ._gauge import Gauge
from ._latencies import mean_latency, seconds_of
from ._loops import worker_loop
from ._report import Line, Section
from ._rounds import in_words, measure
from ._timer import sleep

__all__ = ["gain", "greedy_seconds"]

CAPACITY = 100
TIMEOUT = 5.0
SIZES = (100, 1_000, 10_000)
CONCURRENCY = "spark.sql.execution.pythonUDF.arrow.concurrency.level"
FEW = 10 * CAPACITY  # upper limit of rows in the run that counts the calls
SEEN_BITS = 20
ADDED = "seen long"

Enrich = Callable[[DataFrame], DataFrame]


class SharedGauge(Gauge):
    """A gauge for many threads, which encodes its state in one number."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = Lock()

    def __enter__(self) -> None:
        with self._lock:
            super().__enter__()

    def __exit__(self, *details: object) -> None:
        with self._lock:
            super().__exit__(*details)

    def seen(self) -> int:
        """The number of calls so far and of those in flight, in the two halves of one number."""
        return self.calls << SEEN_BITS | self.running


GAUGE = SharedGauge()  # of this process: the driver or a worker
FLOOR = "bare worker loop, without Spark"


def greedy_seconds(rows: int, capacity: int = CAPACITY) -> float:
    """Seconds for all calls, if each slot that becomes free takes the next call at once.

    This includes the last straggler. No schedule that takes the rows in order without knowing the latencies is faster.
    """
    free = [0.0] * min(capacity, rows)
    for number in range(rows):
        heapq.heapreplace(free, free[0] + seconds_of(number))
    return max(free)


async def call(number: int) -> int:
    """A call with a latency. Returns the state of the gauge, so that calls can be counted."""
    with GAUGE:
        seen = GAUGE.seen()
        await sleep(seconds_of(number))
        return seen


def blocking_call(number: int) -> int:
    """The same for threads."""
    with GAUGE:
        seen = GAUGE.seen()
        time.sleep(seconds_of(number))
        return seen


def gathered(batches: Iterator[pd.Series]) -> Iterator[pd.Series]:
    """The usual code by hand: one `asyncio.gather` for each Arrow batch."""
    for batch in batches:
        yield pd.Series(asyncio.run(_gather(batch)))


async def _gather(batch: pd.Series) -> list[int]:
    slots = asyncio.Semaphore(CAPACITY)

    async def one(number: int) -> int:
        async with slots, asyncio.timeout(TIMEOUT):
            with GAUGE:
                seen = GAUGE.seen()
                await asyncio.sleep(seconds_of(number))
                return seen

    return await asyncio.gather(*(one(int(number)) for number in batch))


def pooled(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """The other usual code by hand: a thread pool, one frame at a time."""
    with ThreadPoolExecutor(CAPACITY) as pool:
        for frame in frames:
            yield frame.assign(seen=list(pool.map(blocking_call, frame["id"])))


def gain(spark: SparkSession, *, quick: bool, on_step: Callable[[], object]) -> list[Section]:
    """One table per size of Arrow batches: wall time, share of perfect scheduling, and calls in flight."""
    return [_of_size(spark, size, quick=quick, on_step=on_step) for size in SIZES]


def _of_size(spark: SparkSession, size: int, *, quick: bool, on_step: Callable[[], object]) -> Section:
    rows, rounds = (2_000, 1) if quick else (20_000, 3)
    # With a barrier per batch, small batches take minutes; a fifth of the rows is enough
    of_peers = rows // 5 if size == SIZES[0] else rows
    spark.conf.set(BATCH, size)
    spark.conf.set(CONCURRENCY, CAPACITY)
    enriched = {name: each(_numbers(spark, rows)) for name, each in _ours().items()}
    enriched |= {name: each(_numbers(spark, of_peers)) for name, each in _peers().items()}
    rows_of = {name: of_peers if name in _peers() else rows for name in (*enriched, FLOOR)}
    jobs: dict[str, Callable[[], float]] = {name: partial(seconds_to_run, each) for name, each in enriched.items()}
    measured = measure(jobs | {FLOOR: partial(_without_spark, rows)}, rounds, on_step, warm_up=not quick)
    section = Section(
        f"Gain: calls in Spark, Arrow batches of {size:,} rows",
        f"20 ms mean, 1 % at one second, capacity {CAPACITY}, one task; wall time, {in_words(rounds)}. "
        "Perfect: each slot takes the next call as it becomes free, simulated with these latencies; `from` and `to` "
        f"are the worst and the best round. Calls and their peak are counted in a separate run of at most {FEW:,} rows",
        {
            "rows": "{:,.0f}",
            "seconds": "{:.2f}",
            "of perfect": "{:.1%}",
            "from": "{:.1%}",
            "to": "{:.1%}",
            "of Little's law": "{:.0%}",
            "calls for each row": "{:.2f}",
        },
        name=f"gain {size}",
    )
    functions = _ours() | _peers()
    for name in measured.numbers:
        seconds, count = measured.median(name), rows_of[name]
        perfect = greedy_seconds(count)
        values = {
            "rows": count,
            "seconds": seconds,
            "of perfect": perfect / seconds,
            "from": perfect / max(measured.numbers[name]),
            "to": perfect / min(measured.numbers[name]),
            "of Little's law": count * mean_latency(count) / CAPACITY / seconds,
        }
        few = min(FEW, count)
        calls, peak = (
            _counted(functions[name](_numbers(spark, few))) if name in functions else _counted_without_spark(few)
        )
        section.lines.append(Line(name, {**values, "calls for each row": calls / few}, peak))
    return section


def _numbers(spark: SparkSession, rows: int) -> DataFrame:
    return spark.range(0, rows, 1, 1)


def _ours() -> dict[str, Enrich]:
    column = async_pandas_udf(call, "long", timeout=TIMEOUT, capacity=CAPACITY)
    return {
        "unordered_wait": lambda df: unordered_wait(df, call, ADDED, inputs=["id"], timeout=TIMEOUT, capacity=CAPACITY),
        "async_pandas_udf": lambda df: df.withColumn("seen", column("id")),
    }


def _peers() -> dict[str, Enrich]:
    gather: Any = pandas_udf(gathered, "long")
    level: Any = F.udf(blocking_call, "long", useArrow=True)
    return {
        "asyncio.gather per batch": lambda df: df.withColumn("seen", gather("id")),
        "Spark's concurrency.level": lambda df: df.withColumn("seen", level("id")),
        "threads in mapInPandas": lambda df: df.mapInPandas(pooled, f"id long, {ADDED}"),
    }


def _without_spark(rows: int) -> float:
    """Seconds that the bare worker loop takes on the same clock."""
    began = time.perf_counter()
    trio.run(worker_loop, call, rows, CAPACITY, TIMEOUT)
    return time.perf_counter() - began


def _counted_without_spark(rows: int) -> tuple[int, int]:
    before = GAUGE.calls
    _without_spark(rows)
    return GAUGE.calls - before, GAUGE.peak


def _counted(df: DataFrame) -> tuple[int, int]:
    """The number of calls, and the peak in flight."""
    calls, running = F.shiftright("seen", SEEN_BITS), F.col("seen").bitwiseAND((1 << SEEN_BITS) - 1)
    counted: Any = df.agg(F.max(calls) - F.min(calls) + 1, F.max(running)).first()
    return int(counted[0]), int(counted[1])
