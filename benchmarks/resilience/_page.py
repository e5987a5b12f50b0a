"""The report of the experiments as a page of the documentation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from .._page import table
from .._report import Report, Section
from ._experiments import EXPERIMENTS
from ._plots import draw

__all__ = ["text_of", "write_page"]

HEAD = """\
# Resilience: one word in front of many services

What does a job do when its service is limited, slow or down? Each experiment runs the real operator in front of a
simulated service, on a virtual clock and with fixed random numbers, so each run has the same numbers on every machine.
The command that writes this page; with the name of a part, such as `auto`, `auto-drawn` or `many`, it runs this part:

    python -m benchmarks resilience --json docs/design/resilience.json --page docs/design/resilience.md

[Gates](../guide/gates.md) says what to choose. Tests hold this project to criteria for these numbers
(`benchmarks/resilience`), and `just thorough` runs the experiments again. "Backoff only" is an operator without a gate,
which repeats each refused call after 0.1 to 10 s, with full jitter. `resilience.json` also has three experiments with
second calls, which commit 8f0d8521 runs.
"""
QUICK = "**This was a quick run**, only to check that everything works. Its numbers are rough."


def write_page(report: Report, path: Path) -> None:
    """Write the page, and its pictures as `<stem>-<experiment>.svg` in the same folder.

    Raises:
        ImportError: matplotlib is missing.
    """
    for section in _shown(report):
        if section.series:
            draw(EXPERIMENTS[section.name], section, path.with_name(f"{path.stem}-{section.name}.svg"))
    path.write_text(text_of(report, path.stem), encoding="utf-8")


def _shown(report: Report) -> list[Section]:
    return [section for section in report.sections if section.name in EXPERIMENTS]


def text_of(report: Report, stem: str) -> str:
    """The page's Markdown. The names of its pictures start with `stem`."""
    return "\n".join(_lines(report, stem)) + "\n"


def _lines(report: Report, stem: str) -> Iterator[str]:
    yield HEAD.rstrip()
    if report.is_quick:
        yield from ("", QUICK)
    for section in _shown(report):
        experiment = EXPERIMENTS[section.name]
        yield from ("", f"## {experiment.title}", "", f"{experiment.setting}.", "")
        if section.series:
            yield from (f"![{experiment.title}: {experiment.y_label}]({stem}-{section.name}.svg)", "")
        yield from (experiment.reading, "")
        yield from table(section.cells())
