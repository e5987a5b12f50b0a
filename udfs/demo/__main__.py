"""The demo: real flights, enriched by a Spark job with real weather that an HTTP service gives.

Run `python -m udfs.demo --help`.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, StructType
from rich.console import Console

from ._behaviour import Behaviour
from ._by_hand import by_hand
from ._facts import SCHEMA
from ._interrupt import interruptible
from ._process import service
from ._report import comparison, delays, summary
from ._run import run
from ._spark import Job, delay_by_weather, flights, problems_of, session
from ._stream import Stream

DEFAULT_OUTPUT = Path("output")
SAMPLE = 1_000
TASKS = 2

Side = Callable[[DataFrame], DataFrame]


def main(arguments: list[str] | None = None) -> int:
    """Run the demo; 0 if every flight came out once, with the weather that the source has."""
    options = _options(arguments)
    console = Console()
    try:
        return interruptible(lambda: _demo(options, console))
    except KeyboardInterrupt:
        console.print("[yellow]stopped: the job is cancelled, and the service has ended[/]")
        if options.stream:
            console.print("run the same again, and it goes on where it was stopped")
        return 130


def _demo(options: argparse.Namespace, console: Console) -> int:
    job = Job(options.mode, options.capacity, options.timeout, options.full, options.rows)
    return (_stream_demo if options.stream else _batch_demo)(job, options, console)


def _stream_demo(job: Job, options: argparse.Namespace, console: Console) -> int:
    output = options.output or DEFAULT_OUTPUT / "stream"
    stream = Stream(output)
    console.print("starting the lookup service and Spark")
    with (
        tempfile.TemporaryDirectory() as scratch,
        service(Behaviour(seed=options.seed)) as lookup,
        session() as spark,
    ):
        how = "going on where the last run was stopped" if stream.goes_on else "one file a day, as they come"
        console.print(f"{how}; the service is at {lookup.url}")
        problems = stream.run(spark, job, lookup, console, Path(scratch))
        console.print()
        delays(console, delay_by_weather(stream.enriched(spark).cache()))
        console.print()
        return _verdict(console, problems, stream.flights)


def _batch_demo(job: Job, options: argparse.Namespace, console: Console) -> int:
    output = _checked(options.output)
    console.print("starting the lookup service and Spark")
    with (
        tempfile.TemporaryDirectory() as scratch,
        service(Behaviour(seed=options.seed)) as lookup,
        session() as spark,
    ):
        before = flights(spark, job, Path(scratch))
        rows = before.count()
        console.print(f"{rows:,} flights; the service is at {lookup.url}")
        ours = run(spark, lookup, console, "enriching", lambda: _write(job.enrich(before, lookup.url), output))
        sides: dict[str, Side] = {
            "by hand: gather per Arrow batch": lambda df: _by_hand(df, lookup.url, job),
            "this operator": lambda df: job.enrich(df, lookup.url, shared=False),
        }
        sample = before.limit(SAMPLE).repartition(TASKS).cache()
        sample_rows = sample.count()
        width = max(map(len, sides))
        compared = {
            name: run(spark, lookup, console, f"{name:{width}}", partial(_drain, side(sample)))
            for name, side in sides.items()
        }
        after = spark.read.parquet(str(output)).cache()
        lookups = rows + before.where("tailnum is not null").count()
        errors = after.where("error is not null").count()
        console.print()
        delays(console, delay_by_weather(after))
        console.print()
        summary(console, ours, rows=rows, lookups=lookups, errors=errors, in_flight=TASKS * job.capacity)
        console.print()
        comparison(console, compared, sample_rows)
        console.print()
        return _verdict(console, problems_of(spark, before, after), output)


def _verdict(console: Console, problems: list[str], output: Path) -> int:
    for problem in problems:
        console.print(f"[red]✗ {problem}[/]")
    if not problems:
        console.print("[green]✓ every flight came out once, and its weather is the one in the source data[/]")
    console.print(f"written to {output}")
    return 1 if problems else 0


def _write(df: DataFrame, output: Path) -> None:
    df.write.parquet(str(output))


def _by_hand(df: DataFrame, url: str, job: Job) -> DataFrame:
    added = DataType.fromDDL(SCHEMA)
    assert isinstance(added, StructType)
    return df.mapInPandas(by_hand(url, job.capacity, job.timeout), StructType([*df.schema, *added]))


def _drain(df: DataFrame) -> None:
    df.write.format("noop").mode("append").save()


def _checked(output: Path | None) -> Path:
    """Where the result goes. Only the default place is overwritten."""
    path = DEFAULT_OUTPUT / "flights" if output is None else output
    if output is None:
        shutil.rmtree(path, ignore_errors=True)
    elif path.exists():
        sys.exit(f"{path} exists already: remove it, or give another --output")
    return path


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m udfs.demo", description=str(__doc__).splitlines()[0])
    parser.add_argument(
        "--stream",
        action="store_true",
        help="a streaming query: the flights arrive day by day; Ctrl-C, and the same command goes on",
    )
    parser.add_argument("--full", action="store_true", help="all 336,776 flights of 2013 instead of January's")
    parser.add_argument("--rows", type=_positive, help="at most so many flights")
    parser.add_argument("--capacity", type=_positive, default=200, help="calls in flight per task (default: 200)")
    parser.add_argument("--timeout", type=_seconds, default=10.0, help="seconds per flight (default: 10)")
    parser.add_argument("--mode", choices=["ordered", "unordered"], default="unordered", help="(default: unordered)")
    parser.add_argument(
        "--output", type=Path, help="a folder for the result (default: output/flights or output/stream)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the service's latencies and errors (default: 0)")
    return parser.parse_args(arguments)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {text}")
    return number


def _seconds(text: str) -> float:
    seconds = float(text)
    if not seconds > 0:
        raise argparse.ArgumentTypeError(f"must be seconds above 0, got {text}")
    return seconds


if __name__ == "__main__":
    sys.exit(main())
