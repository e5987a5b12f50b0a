"""HTTP requests from Spark, compared with aiohttp by hand: wall time, and CPU time."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from trio_asyncio_io import AsyncFunction
from udfs import ordered_wait, unordered_wait
from udfs.http import client

from ._by_hand import CAPACITY, TIMEOUT, gathered, requesting, sliding_loop
from ._gain import ADDED, Enrich, in_pandas, numbers
from ._http import Cost
from ._http_server import serving
from ._report import Line, Section
from ._rounds import Rounds, alternate, in_words
from ._spark import BATCH, seconds_to_run
from ._year import TICKS, fields

SIZES = (10_000, 1_000, 100)  # of Arrow batches; the first is Spark's default


class Fetch(AsyncFunction[int, int]):
    """A request for each row, with one client for each worker process."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def open(self) -> None:
        self.http = client()

    async def invoke(self, number: int) -> int:
        response = await self.http.get(f"{self.url}/{number}")
        return int(response.raise_for_status().json()["answer"])

    async def close(self) -> None:
        await self.http.aclose()


def requests(spark: SparkSession, *, quick: bool, on_step: Callable[[], object]) -> list[Section]:
    """Wall time by the size of Arrow batches, and the CPU time of a row."""
    rows, rounds = (2_000, 1) if quick else (20_000, 3)
    found: dict[int, dict[str, list[Cost]]] = {}
    with serving() as url:
        contenders = _contenders(f"{url}/slow")
        for size in SIZES:
            spark.conf.set(BATCH, size)
            jobs = {name: partial(_cost, enrich(numbers(spark, rows))) for name, enrich in contenders.items()}
            is_default = size == SIZES[0]
            found[size] = alternate(jobs, rounds if is_default else 1, on_step, warm_up=is_default)
    return [_section(found, rows, rounds)]


def _contenders(url: str) -> dict[str, Enrich]:
    options: Any = {"inputs": ["id"], "timeout": TIMEOUT, "capacity": CAPACITY}
    return {
        "ordered_wait": lambda df: ordered_wait(df, Fetch(url), ADDED, **options),
        "unordered_wait": lambda df: unordered_wait(df, Fetch(url), ADDED, **options),
        "aiohttp, sliding window": partial(in_pandas, partial(sliding_loop, partial(requesting, url))),
        "aiohttp, gather per batch": partial(in_pandas, partial(gathered, partial(requesting, url))),
    }


def _section(found: dict[int, dict[str, list[Cost]]], rows: int, rounds: int) -> Section:
    columns = {size: f"{size:,} rows" for size in SIZES}
    section = Section(
        "Requests from Spark: wall time by the size of Arrow batches, and CPU time",
        "1 % of the requests take a second, the others 20 ms on average; the service runs in a process of its own. "
        f"Capacity {CAPACITY}, one task, {rows:,} rows; {in_words(rounds)}, one with smaller batches. Times are "
        "ratios to the first line in the same round. `from` and `to` are the quartiles with batches of 10,000 rows, "
        "Spark's default. CPU time is that of the Python workers, with these batches. This project's lines use "
        "`udfs.http.client`. The window has one session of aiohttp for each task (`benchmarks/_by_hand.py`)",
        {columns[SIZES[0]]: "{:.2f}"}
        | dict.fromkeys(("from", "to", *columns.values()), "{:.2f}")
        | {"CPU μs/row": "{:.0f}", "CPU ratio": "{:.2f}"},
        name="requests",
    )
    walls = {size: _rounds(costs, "seconds") for size, costs in found.items()}
    default, cpus = walls[SIZES[0]], _rounds(found[SIZES[0]], "cpu")
    for name in cpus.numbers:
        values = {columns[size]: walls[size].ratio(name) for size in SIZES}
        values |= zip(("from", "to"), default.spread(name), strict=True)
        values |= {"CPU μs/row": cpus.median(name) / rows * 1e6, "CPU ratio": cpus.ratio(name)}
        section.lines.append(Line(name, values))
    return section


def _rounds(costs: dict[str, list[Cost]], attribute: str) -> Rounds:
    return Rounds({name: [getattr(each, attribute) for each in rounds] for name, rounds in costs.items()})


def _cost(df: DataFrame) -> Cost:
    before = _cpu_of_workers()
    wall = seconds_to_run(df)
    return Cost(wall, _cpu_of_workers() - before)


def _cpu_of_workers() -> float:
    """CPU seconds of the Python workers of this session of processes, with those of threads that have ended."""
    ticks = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            found = fields(process)
            if int(found[3]) == os.getsid(0) and b"pyspark.daemon" in (process / "cmdline").read_bytes():
                ticks += sum(map(int, found[11:13]))
        except (OSError, IndexError):  # it has ended
            continue
    return ticks / TICKS
