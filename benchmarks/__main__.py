"""The command line: `python -m benchmarks --help`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

import benchmarks

from ._overhead import overhead
from ._plot import plot
from ._report import Report, Section
from ._throughput import throughput

PARTS = ("operator", "latency", "http", "spark", "streaming")
WIDTH = 110  # columns, where there is no terminal to ask


def main() -> int:
    """Measure, show, and write."""
    options = _options()
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    report = Report(options.quick)
    for part in options.parts or PARTS:
        for section in _measured(part, console, options):
            section.show(console)
            report.sections.append(section)
    if options.json is not None:
        report.write(options.json)
        console.print(f"written to {options.json}")
    return 0


def _measured(part: str, console: Console, options: argparse.Namespace) -> list[Section]:
    quick = options.quick
    columns = (SpinnerColumn(), TextColumn("{task.description}: {task.completed} measurements"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(part, total=None)

        def on_step() -> None:
            progress.advance(task)

        if part == "operator":
            return overhead(quick=quick, on_step=on_step)
        if part == "latency":
            return [throughput(quick=quick, on_step=on_step)]
        if part == "http":
            from ._http import http  # noqa: PLC0415 - the operator is measured without httpx too

            return http(quick=quick, on_step=on_step)
        from ._enriching import cost, session  # noqa: PLC0415 - the operator is measured without Spark too
        from ._gain import gain  # noqa: PLC0415
        from ._start_up import start_up  # noqa: PLC0415

        with session() as spark:
            if part == "streaming":
                return [_streamed(spark, options, on_step)]
            more = {"quick": quick, "on_step": on_step}
            return [cost(spark, **more), *gain(spark, **more), start_up(spark, **more)]


def _streamed(spark: Any, options: argparse.Namespace, on_step: Callable[[], object]) -> Section:
    from ._micro_batches import micro_batches  # noqa: PLC0415 - as above

    section, found = micro_batches(spark, quick=options.quick, on_step=on_step)
    if options.plot is not None:
        plot(found, section.title, options.plot)
    return section


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=(benchmarks.__doc__ or "").splitlines()[0]
    )
    parser.add_argument("parts", nargs="*", metavar="part", help=f"{', '.join(PARTS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds: about three minutes in all")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the numbers there, too")
    parser.add_argument("--plot", type=Path, metavar="PATH", help="draw the micro-batches of `streaming` there, as SVG")
    options = parser.parse_args()
    for part in options.parts:
        if part not in PARTS:
            parser.error(f"there is no part {part}: {', '.join(PARTS)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
