"""The command line: `python -m benchmarks --help`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

import benchmarks

from ._overhead import overhead
from ._page import write_page
from ._prose import filled
from ._report import RECORDED, Report, Section
from ._throughput import throughput
from ._year import year
from .resilience._command import main as resilience

WIDTH = 150  # columns, if there is no terminal

Step = Callable[[], object]


def main() -> int:
    """Measure the parts, print the tables and write the files."""
    if sys.argv[1:2] == ["resilience"]:
        return resilience(sys.argv[2:])
    options = _options()
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    recorded = Report.read(options.json) if options.json is not None and options.json.exists() else None
    report = _report(options, recorded)
    for part in () if options.read else options.parts or PARTS:
        sections = _measured(part, console, options)
        for section in sections:
            section.show(console)
        report.put(part, sections)
        if recorded is not None and recorded.is_quick == report.is_quick:
            report.keep_recorded(recorded)
        if options.json is not None:
            report.write(options.json)  # after each part, so that an interrupted run keeps the finished ones
    report.sections.sort(key=lambda section: ("operator", RECORDED, *PARTS).index(section.part))
    if options.json is not None:
        report.write(options.json)
        console.print(f"written to {options.json}")
    if options.page is not None:
        write_page(report, options.page)
        console.print(f"written to {options.page}")
    for page in options.fill:
        page.write_text(filled(page.read_text(encoding="utf-8"), report), encoding="utf-8")
        console.print(f"filled {page}")
    return 0


def _report(options: argparse.Namespace, recorded: Report | None) -> Report:
    """A new report. If only some parts are measured, it starts with the others from the JSON file."""
    if options.read is not None:
        return Report.read(options.read)
    report = Report(options.quick)
    if recorded is not None and recorded.is_quick == report.is_quick:
        report.machine["packages"] = recorded.machine["packages"] | report.machine["packages"]
        if options.parts:
            report.sections.extend(recorded.sections)
            report.machine["load"] = recorded.machine["load"]  # most sections are older than this run
    return report


def _measured(part: str, console: Console, options: argparse.Namespace) -> list[Section]:
    columns = (SpinnerColumn(), TextColumn("{task.description}: {task.completed} measurements"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(part, total=None)
        return PARTS[part](options, lambda: progress.advance(task))


def _operator(options: argparse.Namespace, on_step: Step) -> list[Section]:
    return overhead(quick=options.quick, on_step=on_step)


def _latency(options: argparse.Namespace, on_step: Step) -> list[Section]:
    return throughput(quick=options.quick, on_step=on_step)


def _http(options: argparse.Namespace, on_step: Step) -> list[Section]:
    from ._http import http  # noqa: PLC0415 - the operator's parts do not need httpx

    return http(quick=options.quick, on_step=on_step)


def _spark(options: argparse.Namespace, on_step: Step) -> list[Section]:
    from ._enriching import cost, session, start_up  # noqa: PLC0415 - nor Spark
    from ._two_operators import two_operators  # noqa: PLC0415

    with session() as spark:
        return [each(spark, quick=options.quick, on_step=on_step) for each in (cost, start_up, two_operators)]


def _year(options: argparse.Namespace, on_step: Step) -> list[Section]:
    return [year(quick=options.quick, on_step=on_step)]


def _gain(options: argparse.Namespace, on_step: Step) -> list[Section]:
    from ._enriching import session  # noqa: PLC0415 - as above
    from ._gain import gain  # noqa: PLC0415

    with session() as spark:
        return gain(spark, quick=options.quick, on_step=on_step)


def _streaming(options: argparse.Namespace, on_step: Step) -> list[Section]:
    from ._enriching import session  # noqa: PLC0415 - as above
    from ._micro_batches import micro_batches  # noqa: PLC0415

    with session() as spark:
        return [micro_batches(spark, quick=options.quick, on_step=on_step)]


PARTS: dict[str, Callable[[argparse.Namespace, Step], list[Section]]] = {
    "operator": _operator,
    "latency": _latency,
    "http": _http,
    "spark": _spark,
    "year": _year,
    "gain": _gain,
    "streaming": _streaming,
}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=(benchmarks.__doc__ or "").splitlines()[0],
        epilog="`python -m benchmarks resilience --help`: gates in front of simulated services",
    )
    parser.add_argument("parts", nargs="*", metavar="part", help=f"{', '.join(PARTS)} (default: all)")
    parser.add_argument(
        "--quick", action="store_true", help="measure fewer and shorter rounds: about five minutes in all"
    )
    parser.add_argument(
        "--json", type=Path, metavar="PATH", help="write the numbers to this file, and keep those of other parts"
    )
    parser.add_argument(
        "--page", type=Path, metavar="PATH", help="write a page with plots to this file, as Markdown and SVG"
    )
    parser.add_argument(
        "--fill",
        type=Path,
        metavar="PATH",
        nargs="*",
        default=[],
        help="update the marked numbers in these pages",
    )
    parser.add_argument(
        "--read", type=Path, metavar="PATH", help="read the numbers from this JSON file and measure nothing"
    )
    options = parser.parse_args()
    for part in options.parts:
        if part not in PARTS:
            parser.error(f"no such part: {part} (parts: {', '.join(PARTS)})")
    return options


if __name__ == "__main__":
    sys.exit(main())
