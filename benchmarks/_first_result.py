"""Time to the first result in Spark."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import DataFrame, SparkSession

from ._by_hand import CAPACITY
from ._gain import CONCURRENCY, contenders, numbers
from ._latencies import seconds_of
from ._report import Line, Section
from ._rounds import in_words, measure

RUNS = count()


def first_result(spark: SparkSession, *, quick: bool, on_step: Callable[[], object]) -> list[Section]:
    """Seconds to the first result of the operator and of code by hand."""
    rows, rounds = (2_000, 1) if quick else (20_000, 3)
    spark.conf.set(CONCURRENCY, CAPACITY)
    with TemporaryDirectory() as folder:
        jobs = {
            name: partial(_seconds_after_first_call, numbers(spark, rows), name, Path(folder))
            for name in contenders(seconds_of)
        }
        measured = measure(jobs, rounds, on_step, warm_up=False)
    section = Section(
        "First result in Spark",
        f"from the first call to the first of {rows:,} rows at the driver, with Spark's default settings and capacity "
        f"{CAPACITY}; {in_words(rounds)}. 1 % of the calls take a second, the others 20 ms, the "
        f"first one {1000 * seconds_of(0):.0f} ms. In a stream, the rows of a micro-batch are visible at its end",
        {"seconds": "{:.2f}"},
        name="first result",
    )
    section.lines.extend(Line(name, {"seconds": measured.median(name)}) for name in jobs)
    return [section]


def _seconds_after_first_call(df: DataFrame, name: str, folder: Path) -> float:
    file = folder / str(next(RUNS))  # another one for each run: calls of the run before may still start
    # With a condition, Spark does not pass the limit on to the input of a column UDF
    contenders(partial(_noting, file))[name](df).where("answer >= 0").first()
    return time.time() - file.stat().st_mtime


def _noting(file: Path, number: int) -> float:
    """The latency of a call. The file's time is that of the first call."""
    if not file.exists():
        file.touch()
    return seconds_of(number)
