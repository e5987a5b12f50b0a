"""The command line: `python -m benchmarks resilience --help`."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from .._report import Report, Section
from ._experiments import EXPERIMENTS
from ._page import write_page

__all__ = ["keep_others", "main"]

ORDER = {name: place for place, name in enumerate(EXPERIMENTS)}


def main(arguments: Sequence[str]) -> int:
    """Run the experiments, print the tables and write the files."""
    options = _options(arguments)
    console = Console()
    logging.getLogger("udfs").setLevel(logging.ERROR)  # not each task whose simulated source goes away
    recorded = Report.read(options.json) if options.json is not None and options.json.exists() else None
    report = _report(options, recorded)
    for name in () if options.read else options.experiments or EXPERIMENTS:
        section = _run(name, console, quick=options.quick)
        if recorded is not None and recorded.is_quick == report.is_quick:
            keep_others(section, recorded)
        report.sections[:] = [*(each for each in report.sections if each.name != name), section]
        report.sections.sort(key=lambda section: ORDER.get(section.name, len(ORDER)))
        if options.json is not None:
            report.write(options.json)  # after each one, so that an interrupted run keeps the finished ones
    if options.page is not None:
        write_page(report, options.page)
        console.print(f"written to {options.page}")
    return 0


def _report(options: argparse.Namespace, recorded: Report | None) -> Report:
    """A new report. If only some experiments run, it starts with the others from the JSON file."""
    if options.read is not None:
        return Report.read(options.read)
    report = Report(options.quick)
    report.machine["load"] = 0.0  # the clock is virtual
    if options.experiments and recorded is not None:
        report.sections.extend(recorded.sections)
    return report


def _run(name: str, console: Console, *, quick: bool) -> Section:
    columns = (SpinnerColumn(), TextColumn("{task.description}: {task.completed} runs"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(name, total=None)
        section = EXPERIMENTS[name].run(quick=quick, on_step=lambda: progress.advance(task))
    section.show(console)
    return section


def keep_others(section: Section, recorded: Report) -> None:
    """Keep the recorded lines and series of algorithms that are not run any more."""
    before = recorded.section(section.name)
    if before is not None:
        section.lines.extend(line for line in before.lines if section.line(line.name) is None)
        section.series.update({name: points for name, points in before.series.items() if name not in section.series})


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks resilience",
        description="Runs gates in front of simulated services, on a virtual clock.",
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
