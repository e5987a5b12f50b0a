"""Share of the calls per second that the capacity allows, behind the bridge and without Spark's JVM."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from statistics import median

import pyarrow as pa
import trio
from pyspark.sql.types import LongType, StructField, StructType

from udfs._plan.arguments import make_settings
from udfs._sent.settings import Enrichment
from udfs._spark_thread.conversion import RowConversion

from ._contenders import with_operator
from ._report import Line, Section
from ._rounds import alternate, in_words
from ._timer import sleep

__all__ = ["bridge"]

CAPACITY = 1_000
SECONDS = 0.05  # of a call
TIMEOUT = 5.0
BATCH = 10_000  # Spark's default
POSSIBLE = CAPACITY / SECONDS


@dataclass(frozen=True, slots=True)
class Run:
    """One measurement.

    Attributes:
        seconds: Wall time.
        loop: CPU seconds of the thread of the calls, from the start of the first call to that of the last.
        other: CPU seconds of the thread that reads and converts; None if there is no such thread.
        chunks: The number of hand-overs to that thread.
    """

    seconds: float
    loop: float
    other: float | None = None
    chunks: int | None = None


STARTS: list[float] = []  # the CPU time of the calls' thread at the start of each call


async def call(number: int) -> int:
    """A call with a latency."""
    STARTS.append(time.thread_time())
    await sleep(SECONDS)
    return number


def bridge(*, quick: bool, on_step: Callable[[], object]) -> Section:
    """The share of capacity / latency that is reached, and the CPU time of both threads."""
    rows, rounds = (20_000, 1) if quick else (100_000, 7)
    contenders: dict[str, Callable[[], Run]] = {
        "the operator alone": partial(_alone, rows),
        "behind the bridge": partial(_behind_the_bridge, rows),
    }
    found = alternate(contenders, rounds, on_step, warm_up=not quick)
    section = Section(
        f"The bridge: calls of {SECONDS * 1000:.0f} ms at a capacity of {CAPACITY:,} in one task, without Spark's JVM",
        f"possible: capacity / latency, {POSSIBLE:,.0f} calls per second; wall and CPU time, {in_words(rounds)} of "
        f"{rows:,} rows in Arrow batches of {BATCH:,}. All calls take equally long, so they end in waves, and the next "
        "calls start one after another while the processor works through the wave. Each microsecond of work per row "
        f"therefore lengthens the cycle of {CAPACITY:,} rows by {CAPACITY / 1000:g} ms. Both threads need the "
        "interpreter's lock, so the work of Spark's thread counts, too, unless the loop is waiting",
        {"of possible": "{:.0%}", "CPU of the loop, μs/row": "{:.1f}", "CPU of Spark's thread, μs/row": "{:.1f}"}
        | {"rows/hand-over": "{:.0f}"},
        name="bridge",
    )
    section.lines.extend(_line(name, runs, rows) for name, runs in found.items())
    return section


def _line(name: str, runs: list[Run], rows: int) -> Line:
    values: dict[str, float | None] = {
        "of possible": rows / median(run.seconds for run in runs) / POSSIBLE,
        "CPU of the loop, μs/row": median(run.loop for run in runs) / rows * 1e6,
    }
    if others := [run.other for run in runs if run.other is not None]:
        values["CPU of Spark's thread, μs/row"] = median(others) / rows * 1e6
    if chunks := [run.chunks for run in runs if run.chunks is not None]:
        values["rows/hand-over"] = rows / median(chunks)
    return Line(name, values)


def _alone(rows: int) -> Run:
    STARTS.clear()
    began = time.perf_counter()
    trio.run(partial(with_operator, mode="unordered"), call, rows, CAPACITY, TIMEOUT)
    return Run(time.perf_counter() - began, STARTS[-1] - STARTS[0])


def _behind_the_bridge(rows: int) -> Run:
    STARTS.clear()
    settings = make_settings(call, TIMEOUT, {"capacity": CAPACITY}, mode="unordered")
    added = StructType([StructField("result", LongType())])
    conversion = RowConversion(Enrichment(settings, added, "UTC", inputs=(0,)))
    began, cpu = time.perf_counter(), time.thread_time()
    chunks = sum(1 for _ in conversion.run(_batches(rows)))
    return Run(time.perf_counter() - began, STARTS[-1] - STARTS[0], time.thread_time() - cpu, chunks)


def _batches(rows: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, rows, BATCH):
        yield pa.RecordBatch.from_arrays([pa.array(range(start, min(rows, start + BATCH)), pa.int64())], names=["id"])
