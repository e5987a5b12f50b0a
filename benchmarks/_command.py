"""A command line: measures parts, shows their tables and writes files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from ._page import filled
from ._report import Report, Section

WIDTH = 150  # columns, if there is no terminal


class Part(Protocol):
    """Measures one part, and calls `on_step` after each measurement."""

    def __call__(self, *, quick: bool, on_step: Callable[[], object]) -> list[Section]:
        """The tables of the part."""


def run(
    parser: argparse.ArgumentParser,
    arguments: Sequence[str],
    parts: Mapping[str, Part],
    write_page: Callable[[Report, Path], None],
    machine: dict[str, Any],
) -> int:
    """Measure the parts, print the tables and write the files.

    Args:
        parser: Has the name and the description of the command.
        arguments: Those of the command.
        parts: All parts, by name.
        write_page: Writes a report as a page.
        machine: What the report says of the machine of these parts, or nothing.
    """
    options = _options(parser, arguments, parts)
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    report = Report.read(options.read) if options.read is not None else _started(options)
    for name in () if options.read else options.parts or parts:
        sections = _measured(name, parts[name], console, quick=options.quick)
        for section in sections:
            section.show(console)
        report.put(name, sections, machine)
        if options.json is not None:
            report.write(options.json)  # after each part, so that an interrupted run keeps the finished ones
            console.print(f"written to {options.json}")
    if options.page is not None:
        write_page(report, options.page)
        console.print(f"written to {options.page}")
    for page in options.fill:
        page.write_text(filled(page.read_text(encoding="utf-8"), report), encoding="utf-8")
        console.print(f"filled {page}")
    return 0


def _started(options: argparse.Namespace) -> Report:
    """A report with the tables that the JSON file has. Each part replaces its own."""
    recorded = Report.read(options.json) if options.json is not None and options.json.exists() else None
    return recorded if recorded is not None and recorded.is_quick == options.quick else Report(options.quick)


def _measured(name: str, part: Part, console: Console, *, quick: bool) -> list[Section]:
    columns = (SpinnerColumn(), TextColumn("{task.description}: {task.completed} measurements"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(name, total=None)
        return part(quick=quick, on_step=lambda: progress.advance(task))


def _options(
    parser: argparse.ArgumentParser, arguments: Sequence[str], parts: Mapping[str, Part]
) -> argparse.Namespace:
    parser.add_argument("parts", nargs="*", metavar="part", help=f"{', '.join(parts)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="measure less: the numbers are rough")
    parser.add_argument(
        "--json", type=Path, metavar="PATH", help="write the numbers to this file, and keep those of other parts"
    )
    parser.add_argument(
        "--page", type=Path, metavar="PATH", help="write a page with plots to this file, as Markdown and SVG"
    )
    parser.add_argument(
        "--fill", type=Path, metavar="PATH", nargs="*", default=[], help="update the marked numbers in these pages"
    )
    parser.add_argument(
        "--read", type=Path, metavar="PATH", help="read the numbers from this JSON file and measure nothing"
    )
    options = parser.parse_args(arguments)
    for part in options.parts:
        if part not in parts:
            parser.error(f"no such part: {part} (parts: {', '.join(parts)})")
    return options
