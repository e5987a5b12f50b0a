"""Enrich the flights that left New York City in 2013 with weather and aircraft data from a local HTTP service.

The command starts the service and Spark, enriches the flights of January, and compares each one with the source data.
"""

# ruff: noqa: E402 - the handler of Ctrl-C comes before the imports, which take seconds

from __future__ import annotations

import os
import signal

KILLED = 128  # the exit status of a process that a signal ends is this and the signal's number

if __name__ == "__main__":
    signal.signal(signal.SIGINT, lambda number, _: os._exit(KILLED + number))

import argparse
import fcntl
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

from trio_asyncio_io import Observer, transient
from trio_asyncio_io.policies import cached, single_flight
from trio_asyncio_io.report import report

from .._extras import needs_extra
from ..check import check_java

with needs_extra("the demo", "demo"):
    import httpx
    from pyspark.sql import DataFrame, Observation, SparkSession
    from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it
    from rich.console import Console

    from .. import AsyncFunction, ExponentialBackoff, unordered_wait
    from ..http import client
    from ..progress import progress
    from . import service
    from ._flights import FLIGHT, PLANE, WEATHER, flights_csv, planes_csv, weather_csv
    from ._summary import print_calls, print_delays

OUTPUT: Final = Path("output", "flights")
REPORT: Final = Path("output", "flights-report.html")
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


def read_flights(spark: SparkSession, path: Path) -> DataFrame:
    """The flights of a CSV file, with the scheduled hour as a timestamp."""
    df = spark.read.csv(str(path), schema=FLIGHT, header=True, nullValue="NA")
    return df.withColumn("scheduled", F.to_timestamp("time_hour"))


class FlightFacts(AsyncFunction[Any, dict[str, Any]]):
    """Looks up the weather at a flight's origin, and its aircraft, over HTTP.

    A 404 gives nulls. A 500 raises `httpx.HTTPStatusError`, and the operator calls `invoke` again.

    Args:
        url: The URL of the service.
    """

    def __init__(self, url: str) -> None:
        self._url = url

    async def open(self) -> None:
        """Open the client and the cache, once per Python worker. Many flights share an hour or an aircraft."""
        self._http = client(base_url=self._url, max_idle=CAPACITY)
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


def enrich(flights: DataFrame, url: str, metrics: Observation, observer: Observer) -> DataFrame:
    """The flights with the columns of their weather and their aircraft, and with `error`, null if nothing failed."""
    return unordered_wait(
        flights,
        FlightFacts(url),
        ADDED,
        inputs=["origin", "time_hour", "tailnum"],
        event_time="scheduled",
        max_out_of_orderness="2 hours",
        capacity=CAPACITY,
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
    hashes = _hashes(known, columns, -1).union(_hashes(answered, columns, 1))
    each = hashes.groupBy("row").agg(F.sum("times").alias("surplus"))
    [(lost, wrong)] = each.selectExpr("sum(greatest(-surplus, 0))", "sum(greatest(surplus, 0))").collect()
    return [problem.format(count) for problem, count in ((LOST, lost - failed), (WRONG, wrong)) if count]


def _hashes(rows: DataFrame, columns: list[str], times: int) -> DataFrame:
    """A hash of 64 bits for each row, which costs less to compare than the row. `xxhash64` ignores nulls."""
    nulls = F.concat(*(F.col(name).isNull().cast("int").cast("string") for name in columns))
    return rows.select(F.xxhash64(*columns, nulls).alias("row"), F.lit(times).alias("times"))


def _columns(spark: SparkSession, path: Path, ddl: str) -> DataFrame:
    columns = [column.split() for column in ddl.split(", ")]
    return spark.read.csv(str(path), header=True, nullValue="NA").select(
        *(F.col(name).cast(dtype).alias(name) for name, dtype in columns)
    )


def run(spark: SparkSession, url: str, scratch: Path, days: int, console: Console) -> int:
    """Enrich the flights of the first days of the year.

    Returns:
        The exit status.
    """
    in_span = F.make_date("year", "month", "day") < F.lit(date(2013, 1, 1) + timedelta(days))
    flights = read_flights(spark, flights_csv(scratch)).where(in_span)
    by_time = flights.repartition(TASKS, "scheduled").sortWithinPartitions("scheduled")
    console.print(f"Looking up the flights of {days} days at {url}")
    calls = Observation("flights")
    started = time.monotonic()
    with (
        report(REPORT, title="Flights with their weather and aircraft") as observer,
        progress(spark, console=console),
    ):
        enrich(by_time, url, calls, observer).write.parquet(str(OUTPUT), mode="overwrite")
    seconds = time.monotonic() - started
    enriched = spark.read.parquet(str(OUTPUT))
    print_delays(console, enriched)
    print_calls(console, calls.get, httpx.get(f"{url}/stats", trust_env=False).json(), seconds)
    problems = check(spark, flights, enriched)
    for problem in problems:
        console.print(f"[red]✗ {problem}[/]")
    if not problems:
        console.print("[green]✓ Every flight came out once, and matches the source data.[/]")
    console.print(f"The enriched flights: {OUTPUT}")
    console.print(f"A report of the calls, for a browser: {REPORT}")
    return 1 if problems else 0


@contextmanager
def session() -> Iterator[SparkSession]:
    """A local Spark session with two cores, which logs nothing. Its workers run this Python.

    The JVM uses its fast compiler only, and one thread for its garbage: the job ends before the work of the optimizing
    compiler would pay off, and both cores are busy.
    """
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    log = Path(__file__).with_name("log4j2.properties")
    java_options = f"-Dlog4j2.configurationFile={log.as_uri()} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("trio-asyncio-io demo")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", java_options)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "4")
        .getOrCreate()
    )
    try:
        yield spark
    finally:
        spark.stop()


def main(arguments: list[str] | None = None) -> int:
    """Run the demo.

    Args:
        arguments: The command line; None: `sys.argv`.

    Returns:
        The exit status: 0 if the check succeeded, 1 if it failed. It is 130 after Ctrl-C, and 143 after SIGTERM.

    Raises:
        SystemExit: An option is invalid, there is no Java, or the result cannot be written.
    """
    options = _parser().parse_args(arguments)
    java = check_java()
    if java.state == "fault":
        sys.exit(f"error: {java.text}. {java.remedy}")
    console = Console(highlight=False)
    with alone_in(OUTPUT.parent), tempfile.TemporaryDirectory() as scratch:
        console.print("Starting the lookup service and Spark...")
        leave = partial(_leave, console, scratch)
        signal.signal(signal.SIGTERM, leave)
        signal.signal(signal.SIGINT, leave)
        with service.running() as url, session() as spark:
            signal.signal(signal.SIGINT, leave)  # PySpark has replaced it
            return run(spark, url, Path(scratch), options.days, console)


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Make the folder, and keep other runs of the demo out of it.

    Raises:
        SystemExit: It cannot be made, or another run uses it.
    """
    try:
        folder.mkdir(exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(f"error: another run uses the folder {folder} here. Wait for its end, or run in another folder")
    except OSError as error:
        sys.exit(f"error: cannot make the folder {folder} here: {error.strerror}. Run it in another folder")
    try:
        yield
    finally:
        os.close(descriptor)


def _leave(console: Console, scratch: str, number: int, _: object) -> None:
    """On a signal, end this process, without an exception: Py4J breaks if one interrupts a call into the JVM.

    The service and the JVM end when they find their standard input closed.
    """
    console.show_cursor()
    console.print("\n[yellow]Stopping Spark and the service.[/]")
    shutil.rmtree(scratch, ignore_errors=True)
    os._exit(KILLED + number)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m udfs.demo", description=__doc__)
    parser.add_argument(
        "--days",
        type=_days,
        default=JANUARY,
        metavar="N",
        help="enrich the flights of the first N days of 2013 (default: 31, all of January)",
    )
    parser.add_argument(
        "--full", dest="days", action="store_const", const=YEAR, help="enrich all 336,776 flights of the year"
    )
    return parser


def _days(text: str) -> int:
    if not (text.isdecimal() and 1 <= int(text) <= YEAR):
        raise argparse.ArgumentTypeError(f"must be 1 to {YEAR}, got {text}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
