"""Enrich the flights that left New York City in 2013 with weather and aircraft data from a local HTTP service.

The command starts the service and Spark, enriches the flights of January, checks every row against the source data, and
compares the operator with the same job written by hand.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from trio_asyncio_io.report import report

from .._extras import needs_extra

with needs_extra("the demo", "demo"):
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType
    from rich.console import Console

    from .._plan.schema import parse_type
    from ._behaviour import Behaviour
    from ._by_hand import by_hand
    from ._facts import SCHEMA
    from ._interrupt import interruptible
    from ._process import service
    from ._report import comparison, delays, summary
    from ._run import run
    from ._spark import JANUARY, YEAR, Job, delay_by_weather, flights, problems_of, session
    from ._stream import Stream

DEFAULT_OUTPUT = Path("output")
SAMPLE_ROWS = 1_000
TASKS = 2

Enrichment = Callable[[DataFrame], DataFrame]


def main(arguments: list[str] | None = None) -> int:
    """Run the demo.

    Args:
        arguments: The command line; None: `sys.argv`.

    Returns:
        The exit status: 0 if the check succeeded, 1 if it failed, 130 after Ctrl-C.
    """
    options = _options(arguments)
    console = Console()
    try:
        return interruptible(lambda: _demo(options, console))
    except KeyboardInterrupt:
        console.print("[yellow]stopped: cancelled the Spark job and ended the service[/]")
        if options.stream:
            console.print("To continue where the stream stopped, run the same command again.")
        return 130


def _demo(options: argparse.Namespace, console: Console) -> int:
    days = YEAR if options.full else options.days
    job = Job(options.mode, options.capacity, options.timeout, days, options.rows)
    return (_stream_demo if options.stream else _batch_demo)(job, options, console)


def _stream_demo(job: Job, options: argparse.Namespace, console: Console) -> int:
    output = options.output or DEFAULT_OUTPUT / "stream"
    stream = Stream(output)
    console.print("Starting the lookup service and Spark...")
    with (
        tempfile.TemporaryDirectory() as scratch,
        service(Behaviour(seed=options.seed)) as lookup,
        session() as spark,
    ):
        how = "Resuming the stopped stream" if stream.is_resumed else "Streaming one file per day"
        console.print(f"{how}. The service listens on {lookup.url}.")
        problems = stream.run(spark, job, lookup, console, Path(scratch))
        console.print()
        delays(console, delay_by_weather(stream.enriched(spark).cache()))
        console.print()
        return _verdict(console, problems, stream.flights)


def _batch_demo(job: Job, options: argparse.Namespace, console: Console) -> int:
    output = _empty_output(options.output)
    console.print("Starting the lookup service and Spark...")
    with (
        tempfile.TemporaryDirectory() as scratch,
        service(Behaviour(seed=options.seed)) as lookup,
        session() as spark,
    ):
        before = flights(spark, job, Path(scratch))
        rows = before.count()
        console.print(f"{rows:,} flights. The service listens on {lookup.url}.")
        page = output.with_name(f"{output.name}-report.html")
        page.parent.mkdir(parents=True, exist_ok=True)
        with report(page, title="Flights with their weather and aircraft") as observer:
            enriched = job.enrich(before, lookup.url, observer=observer)
            enriching = run(spark, lookup, console, "enriching", lambda: _write(enriched, output))
        contenders: dict[str, Enrichment] = {
            "by hand: asyncio.gather per Arrow batch": lambda df: _by_hand(df, lookup.url, job),
            "this operator": lambda df: job.enrich(df, lookup.url, shared=False),
        }
        sample = before.limit(SAMPLE_ROWS).repartition(TASKS).cache()
        sample_rows = sample.count()
        width = max(map(len, contenders))
        compared = {
            name: run(spark, lookup, console, f"{name:{width}}", partial(_drain, enrich(sample)))
            for name, enrich in contenders.items()
        }
        after = spark.read.parquet(str(output)).cache()
        lookups = rows + before.where("tailnum is not null").count()
        errors = after.where("error is not null").count()
        console.print()
        delays(console, delay_by_weather(after))
        console.print()
        summary(console, enriching, rows=rows, lookups=lookups, errors=errors, slots=TASKS * job.capacity)
        console.print()
        comparison(console, compared, sample_rows)
        console.print()
        status = _verdict(console, problems_of(spark, before, after), output)
        console.print(f"A report of the run is in {page}: open it in a browser.")
        return status


def _verdict(console: Console, problems: list[str], output: Path) -> int:
    for problem in problems:
        console.print(f"[red]✗ {problem}[/]")
    if not problems:
        console.print("[green]✓ Every flight came out once, and its weather matches the source data.[/]")
    console.print(f"The enriched flights are in {output}.")
    return 1 if problems else 0


def _write(df: DataFrame, output: Path) -> None:
    df.write.parquet(str(output))


def _by_hand(df: DataFrame, url: str, job: Job) -> DataFrame:
    added = parse_type(SCHEMA)
    assert isinstance(added, StructType)
    return df.mapInPandas(by_hand(url, job.capacity, job.timeout), StructType([*df.schema, *added]))


def _drain(df: DataFrame) -> None:
    df.write.format("noop").mode("append").save()


def _empty_output(output: Path | None) -> Path:
    """The folder for the result. Only the default one is overwritten."""
    path = DEFAULT_OUTPUT / "flights" if output is None else output
    if output is None:
        shutil.rmtree(path, ignore_errors=True)
    elif path.exists():
        sys.exit(f"error: {path} exists already. Remove it, or choose another --output")
    return path


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m udfs.demo", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    span = parser.add_mutually_exclusive_group()
    span.add_argument(
        "--days",
        type=_days,
        default=JANUARY,
        metavar="N",
        help=f"enrich the flights of the first N days of 2013 (default: {JANUARY}, all of January)",
    )
    span.add_argument("--full", action="store_true", help="enrich the flights of the whole year, 336,776 of them")
    parser.add_argument("--rows", type=_positive, metavar="N", help="enrich at most N of these flights")
    parser.add_argument(
        "--stream",
        action="store_true",
        help="run a streaming query instead of a batch job: the flights of each day arrive as one file. Stop it with "
        "Ctrl-C; the same command resumes it",
    )
    parser.add_argument(
        "--mode",
        choices=["ordered", "unordered"],
        default="unordered",
        help="write the flights in input order, or as their results complete (default: unordered)",
    )
    parser.add_argument(
        "--capacity",
        type=_positive,
        default=200,
        metavar="N",
        help="flights that each Spark task looks up at once (default: 200)",
    )
    parser.add_argument(
        "--timeout",
        type=_seconds,
        default=10.0,
        metavar="SECONDS",
        help="time limit for the lookups of one flight, retries included (default: 10)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FOLDER",
        help="write the result to this new folder (default: output/flights, which is overwritten, or output/stream)",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        metavar="N",
        help="seed for the random latencies and errors of the service (default: 0)",
    )
    return parser.parse_args(arguments)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {text}")
    return number


def _days(text: str) -> int:
    number = int(text)
    if not 1 <= number <= YEAR:
        raise argparse.ArgumentTypeError(f"must be 1 to {YEAR}, got {text}")
    return number


def _seconds(text: str) -> float:
    seconds = float(text)
    if not seconds > 0:
        raise argparse.ArgumentTypeError(f"must be seconds above 0, got {text}")
    return seconds


if __name__ == "__main__":
    sys.exit(main())
