"""Time to the only row of a job in a new worker process."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import pandas_udf  # type: ignore[attr-defined]  # exists at run time

from udfs import async_pandas_udf, unordered_wait

from ._report import Line, Section
from ._rounds import in_words, measure

__all__ = ["start_up"]

# Part of the environment of Spark's workers: another value starts another process
OF_ENVIRONMENT = "spark.sql.execution.pandas.udf.buffer.size"
SIZES = count(65_537)


def plain(batches: Iterator[pd.Series]) -> Iterator[pd.Series]:
    """The simplest pandas UDF."""
    yield from batches


async def identity(number: int) -> int:
    return number


def start_up(spark: SparkSession, *, quick: bool, on_step: Callable[[], object]) -> Section:
    """Seconds to the only row of a job, in a new worker process each time; and seconds of importing pandas."""
    rounds = 1 if quick else 11
    theirs: Any = pandas_udf(plain, "long")
    ours = async_pandas_udf(identity, "long", timeout=5.0)
    jobs: dict[str, Callable[[DataFrame], DataFrame]] = {
        "iterator pandas UDF": lambda df: df.select(theirs("id")),
        "async_pandas_udf": lambda df: df.select(ours("id")),
        "unordered_wait": lambda df: unordered_wait(df, identity, "result long", inputs=["id"], timeout=5.0),
    }
    contenders: dict[str, Callable[[], float]] = {name: partial(_first_row, spark, each) for name, each in jobs.items()}
    for modules in ("pandas", "pandas, pyarrow", "trio_asyncio_io"):
        contenders[f"a process that imports {modules}"] = partial(_import, modules)
    contenders["a process that imports nothing"] = partial(_import, "sys")
    measured = measure(contenders, rounds, on_step, warm_up=not quick)
    section = Section(
        "Start-up: the only row of a job, in a new worker process",
        f"wall time, {in_words(rounds)}; the session is warm, the worker process is new",
        {"milliseconds": "{:,.0f}"},
        name="start-up",
    )
    section.lines.extend(Line(name, {"milliseconds": 1000 * measured.median(name)}) for name in contenders)
    return section


def _first_row(spark: SparkSession, job: Callable[[DataFrame], DataFrame]) -> float:
    spark.conf.set(OF_ENVIRONMENT, next(SIZES))
    df = job(spark.range(0, 1, 1, 1))
    began = time.perf_counter()
    df.collect()
    return time.perf_counter() - began


def _import(modules: str) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", f"import {modules}"], check=True)
    return time.perf_counter() - began
