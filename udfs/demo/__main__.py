"""Enrich the flights that left New York City in 2013 with weather and aircraft data from a local HTTP service.

The command starts the service and Spark, enriches the flights of January, and compares each one with the source data.
"""

# ruff: noqa: E402 - the handler of Ctrl-C comes before the imports, which take seconds

from __future__ import annotations

import os
import signal

INTERRUPTED = 130  # the exit status after Ctrl-C

if __name__ == "__main__":
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

from trio_asyncio_io import Observer, transient
from trio_asyncio_io.policies import cached, single_flight
from trio_asyncio_io.report import report

from .._extras import needs_extra
from ..check import check_java

with needs_extra("the demo", "demo"):
    import httpx
    from pyspark.sql import DataFrame, DataFrameReader, Observation, SparkSession
    from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it
    from pyspark.sql.streaming.readwriter import DataStreamReader
    from rich.console import Console

    from .. import AsyncFunction, ExponentialBackoff, unordered_wait
    from ..http import client
    from ..progress import progress
    from . import service
    from ._flights import FLIGHT, PLANE, WEATHER, flights_csv, planes_csv, weather_csv
    from ._session import interruptible, session
    from ._stream import Stream, days_of
    from ._summary import print_calls, print_delays

JANUARY: Final = 31
YEAR: Final = 365
# Twice the cores: at the end of each task, its last slow calls leave its slots empty
TASKS: Final = 4
# A slow response holds a slot for each flight that needs it. With 200 slots, the job's report advises to double them
CAPACITY: Final = 800
ADDED: Final = f"{WEATHER}, {PLANE}"
LOST: Final = "{:,} flights did not come out as in the source data"
WRONG: Final = "{:,} rows came out twice, or not as in the source data"
ADDED_NAMES: Final = [column.split()[0] for column in ADDED.split(", ")]
NO_FACTS: Final[dict[str, Any]] = dict.fromkeys(ADDED_NAMES)


def read_flights(reader: DataFrameReader | DataStreamReader, path: Path) -> DataFrame:
    """The flights of a CSV file, or of a folder of such files, with the scheduled hour as a timestamp."""
    df = reader.csv(str(path), schema=FLIGHT, header=True, nullValue="NA")
    return df.withColumn("scheduled", F.to_timestamp("time_hour"))


class FlightFacts(AsyncFunction[Any, dict[str, Any]]):
    """Looks up the weather at a flight's origin, and its aircraft, over HTTP.

    A 404 gives nulls. A 500 raises `httpx.HTTPStatusError`, and the operator calls `invoke` again.

    Args:
        url: The URL of the service.
        capacity: The largest number of calls at once, each of which needs a connection.
    """

    def __init__(self, url: str, capacity: int) -> None:
        self._url = url
        self._capacity = capacity

    async def open(self) -> None:
        """Open the client and the cache, once per Python worker. Many flights share an hour or an aircraft."""
        self._http = client(base_url=self._url, max_idle=self._capacity)
        self._look_up = cached(single_flight(self._get), size=100_000)

    async def invoke(self, origin: str, time_hour: str, tailnum: str | None) -> dict[str, Any]:
        """Look up one flight. One without a tail number has no aircraft."""
        found = NO_FACTS | await self._look_up(f"/weather/{origin}/{time_hour}")
        if tailnum is not None:
            found |= await self._look_up(f"/planes/{tailnum}")
        return found

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _get(self, path: str) -> dict[str, Any]:
        response = await self._http.get(path)
        if response.status_code == httpx.codes.NOT_FOUND:
            return {}
        found: dict[str, Any] = response.raise_for_status().json()
        return {name: found[name] for name in ADDED_NAMES if name in found}


def enrich(
    flights: DataFrame, url: str, capacity: int, metrics: str | Observation, observer: Observer | None = None
) -> DataFrame:
    """The flights with the columns of their weather and their aircraft, and with `error`, null if nothing failed."""
    return unordered_wait(
        flights,
        FlightFacts(url, capacity),
        ADDED,
        inputs=["origin", "time_hour", "tailnum"],
        event_time="scheduled",
        max_out_of_orderness="2 hours",
        capacity=capacity,
        timeout=30.0,  # even on a busy machine, no flight fails for lack of time
        retry=ExponentialBackoff(4, initial=0.05, maximum=1.0, retry_on=transient),
        on_error="column",
        metrics=metrics,
        observer=observer,
    )


def check(spark: SparkSession, flights: DataFrame, enriched: DataFrame) -> list[str]:
    """Compare the enriched flights with a join of the source data.

    Returns:
        A line for each problem: every flight must come out once, unchanged, with its weather and its aircraft, unless
        its `error` column has a failed lookup.
    """
    weather = _columns(spark, weather_csv(), f"origin string, time_hour string, {WEATHER}")
    planes = _columns(spark, planes_csv(), f"tailnum string, {PLANE}")
    known = flights.join(weather, ["origin", "time_hour"], "left").join(planes, "tailnum", "left")
    answered, failed = enriched.where("error is null"), enriched.where("error is not null").count()
    columns = [*flights.columns, *ADDED_NAMES]
    surplus = F.col("surplus")
    each = _hashes(known, columns, -1).union(_hashes(answered, columns, 1)).groupBy("row").agg(F.sum("times"))
    counts = each.toDF("row", "surplus").select(
        F.coalesce(F.sum(F.when(surplus < 0, -surplus)), F.lit(0)) - failed,
        F.coalesce(F.sum(F.when(surplus > 0, surplus)), F.lit(0)),
    )
    return [problem.format(count) for problem, count in zip((LOST, WRONG), counts.collect()[0], strict=True) if count]


def _hashes(rows: DataFrame, columns: list[str], times: int) -> DataFrame:
    """A hash of 64 bits for each row, which costs less to compare than the row. `xxhash64` ignores nulls."""
    nulls = F.concat(*(F.col(name).isNull().cast("int").cast("string") for name in columns))
    return rows.select(F.xxhash64(*columns, nulls).alias("row"), F.lit(times).alias("times"))


def _columns(spark: SparkSession, path: Path, ddl: str) -> DataFrame:
    columns = [column.split() for column in ddl.split(", ")]
    return spark.read.csv(str(path), header=True, nullValue="NA").select(
        *(F.col(name).cast(kind).alias(name) for name, kind in columns)
    )


def run_batch(spark: SparkSession, url: str, scratch: Path, options: argparse.Namespace, console: Console) -> int:
    """Enrich the flights in a batch job.

    Returns:
        The exit status.
    """
    output = options.output
    page = output.with_name(f"{output.name}-report.html")
    in_span = F.make_date("year", "month", "day") < F.lit(options.end)
    flights = read_flights(spark.read, flights_csv(scratch)).where(in_span)
    by_time = flights.repartition(TASKS, "scheduled").sortWithinPartitions("scheduled")
    console.print(f"Looking up the flights of {options.days} days at {url}")
    calls = Observation("flights")
    started = time.monotonic()
    with (
        report(page, title="Flights with their weather and aircraft") as observer,
        progress(spark, console=console),
    ):
        enrich(by_time, url, options.capacity, calls, observer).write.parquet(str(output), mode="overwrite")
    seconds = time.monotonic() - started
    enriched = spark.read.parquet(str(output))
    print_delays(console, enriched)
    print_calls(console, calls.get, _stats(url), seconds)
    status = _verdict(console, check(spark, flights, enriched), output)
    console.print(f"A report of the calls, for a browser: {page}", soft_wrap=True)
    return status


def run_stream(spark: SparkSession, url: str, scratch: Path, options: argparse.Namespace, console: Console) -> int:
    """Enrich the flights in a streaming query, which an earlier run may have begun.

    Returns:
        The exit status.
    """
    stream = Stream(options.output)
    how = "Resuming the stopped stream" if stream.is_resumed else "Streaming one file per day"
    console.print(f"{how}. Looking up flights at {url}")
    days = days_of(flights_csv(scratch), options.end)
    arriving = read_flights(spark.readStream.option("maxFilesPerTrigger", 1), stream.incoming)
    started = time.monotonic()
    calls = stream.run(enrich(arriving, url, options.capacity, "flights"), days, console)
    seconds = time.monotonic() - started
    enriched = spark.read.parquet(str(stream.flights))
    print_delays(console, enriched)
    print_calls(console, calls, _stats(url), seconds)
    return _verdict(console, check(spark, read_flights(spark.read, stream.incoming), enriched), stream.flights)


def _stats(url: str) -> Mapping[str, int]:
    counts: dict[str, int] = httpx.get(f"{url}/stats", trust_env=False).json()
    return counts


def _verdict(console: Console, problems: list[str], output: Path) -> int:
    for problem in problems:
        console.print(f"[red]✗ {problem}[/]")
    if not problems:
        console.print("[green]✓ Every flight came out once, and matches the source data.[/]")
    console.print(f"The enriched flights: {output}", soft_wrap=True)
    return 1 if problems else 0


def main(arguments: list[str] | None = None) -> int:
    """Run the demo.

    Args:
        arguments: The command line; None: `sys.argv`.

    Returns:
        The exit status: 0 if the check succeeded, 1 if it failed, 130 after Ctrl-C.

    Raises:
        SystemExit: An option is invalid, there is no Java, or the result cannot be written.
    """
    options = _options(arguments)
    java = check_java()
    if java.state == "fault":
        sys.exit(f"error: {java.text}. {java.remedy}")
    _make_writable(options.output if options.stream else options.output.parent)
    console = Console(highlight=False)
    console.print("Starting the lookup service and Spark...")
    run = run_stream if options.stream else run_batch
    farewell = "Stopping Spark and the service."
    if options.stream:
        farewell += " The same command continues the stream."
    with tempfile.TemporaryDirectory() as scratch:

        def work() -> int:
            with service.running() as url, session() as spark:
                return run(spark, url, Path(scratch), options, console)

        try:
            return interruptible(work, console, farewell)
        except KeyboardInterrupt:
            return INTERRUPTED


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.output and options.output.exists() and not options.stream:
        parser.error(f"argument --output: {options.output} exists already. Remove it, or choose another folder")
    options.output = options.output or Path("output", "stream" if options.stream else "flights")
    if found := re.search(r"[*?[{\\]", path := options.output.absolute().as_posix()):
        parser.error(
            f"argument --output: {path} has a {found[0]!r}, and Spark reads *, ?, [, {{ and \\ as patterns. "
            "Choose another folder"
        )
    options.end = date(2013, 1, 1) + timedelta(days=options.days)
    return options


def _make_writable(folder: Path) -> None:
    """Make the folder of the result, and try it before Spark starts."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        sys.exit(f"error: cannot write to {folder}: {error.strerror}. Choose another folder: --output FOLDER")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m udfs.demo", description=__doc__)
    span = parser.add_mutually_exclusive_group()
    span.add_argument(
        "--days",
        type=_up_to(YEAR),
        default=JANUARY,
        metavar="N",
        help="enrich the flights of the first N days of 2013 (default: 31, all of January)",
    )
    span.add_argument(
        "--full", dest="days", action="store_const", const=YEAR, help="enrich all 336,776 flights of the year"
    )
    parser.add_argument(
        "--stream",
        action="store_true",
        help="let the flights of each day arrive as a file, and enrich them in a streaming query. After Ctrl-C, the "
        "same command continues it",
    )
    parser.add_argument(
        "--capacity",
        type=_up_to(10_000),
        default=CAPACITY,
        metavar="N",
        help=f"flights that each Spark task looks up at once (default: {CAPACITY})",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FOLDER",
        help="write the result to this new folder (default: output/flights, which is overwritten, or output/stream)",
    )
    return parser


def _up_to(most: int) -> Callable[[str], int]:
    def integer(text: str) -> int:
        if not 1 <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"must be 1 to {most:,}, got {text}")
        return int(text)

    return integer


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        sys.exit(main())
    except KeyboardInterrupt:  # before Spark's start
        sys.exit(INTERRUPTED)
