"""The command line: `python -m benchmarks resilience --help`."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from .._report import Report
from ._experiments import EXPERIMENTS
from ._page import write_page

__all__ = ["main"]


def main(arguments: Sequence[str]) -> int:
    """Run the experiments, print the tables and write the files."""
    options = _options(arguments)
    console = Console()
    logging.getLogger("udfs").setLevel(logging.ERROR)  # not each task whose simulated source goes away
    report = _report(options)
    for name in () if options.read else options.experiments or EXPERIMENTS:
        _run(name, report, console, quick=options.quick)
        if options.json is not None:
            report.write(options.json)  # after each one, so that an interrupted run keeps the finished ones
    if options.page is not None:
        write_page(report, options.page)
        console.print(f"written to {options.page}")
    return 0


def _report(options: argparse.Namespace) -> Report:
    """A new report. If only some experiments run, it starts with the others from the JSON file."""
    if options.read is not None:
        return Report.read(options.read)
    report = Report(options.quick)
    report.machine["load"] = 0.0  # the clock is virtual
    if options.experiments and options.json is not None and options.json.exists():
        report.sections.extend(Report.read(options.json).sections)
    return report


def _run(name: str, report: Report, console: Console, *, quick: bool) -> None:
    columns = (SpinnerColumn(), TextColumn("{task.description}: {task.completed} runs"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(name, total=None)
        section = EXPERIMENTS[name].run(quick=quick, on_step=lambda: progress.advance(task))
    section.show(console)
    report.sections[:] = [*(each for each in report.sections if each.name != name), section]
    report.sections.sort(key=lambda section: list(EXPERIMENTS).index(section.name))


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks resilience",
        description="Runs gates and other algorithms against simulated services, on a virtual clock.",
    )
    parser.add_argument("experiments", nargs="*", metavar="experiment", help=f"{', '.join(EXPERIMENTS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="run shorter experiments: their numbers are rough")
    parser.add_argument(
        "--json", type=Path, metavar="PATH", help="write the numbers to this file, and keep those of other experiments"
    )
    parser.add_argument(
        "--page", type=Path, metavar="PATH", help="write a page with plots to this file, as Markdown and SVG"
    )
    parser.add_argument(
        "--read", type=Path, metavar="PATH", help="read the numbers from this JSON file and run nothing"
    )
    options = parser.parse_args(arguments)
    for name in options.experiments:
        if name not in EXPERIMENTS:
            parser.error(f"no such experiment: {name} (experiments: {', '.join(EXPERIMENTS)})")
    return options
