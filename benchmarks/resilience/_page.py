"""All experiments, and their report as a page of the documentation, with its pictures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .._page import table
from .._picture import MUTED, OURS, SERIES, picture
from .._report import Report, Section
from . import _automatic, _outages, _rates
from ._automatic import BOTH, CASES, FAST, FAST_ENOUGH, KIND, POLITE, REFUSED, SEEDS, USUAL, WORST
from ._experiment import Experiment

# In the order of the page
EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment for module in (_automatic, _rates, _outages) for experiment in module.EXPERIMENTS
}

HEAD = """\
# Resilience: one word in front of many services

See what a job does when its service is limited, slow or down, and what `capacity="auto"` costs, compared with the
best number that a person could choose. [Gates](../guide/gates.md) says what to choose.
"""
METHOD = """\
Each experiment runs the real operator in front of a simulated service, on a virtual clock and with fixed random
numbers, so each run has the same numbers on every machine. The command that writes this page; with the name of a part,
such as `auto`, `auto-drawn` or `many`, it runs this part:

    python -m benchmarks resilience --json docs/design/resilience.json --page docs/design/resilience.md

Tests hold this project to criteria for these numbers (`benchmarks/resilience`), and `just thorough` runs the
experiments again. "Backoff only" is an operator without a gate, which repeats each refused call after 0.1 to 10 s, with
full jitter.
"""
QUICK = "**This was a quick run**, only to check that everything works. Its numbers are rough."


def write_page(report: Report, path: Path) -> None:
    """Write the page, and its pictures as `<stem>-<experiment>.svg` in the same folder.

    Raises:
        ImportError: matplotlib is missing.
    """
    for section in _shown(report):
        if section.series:
            _draw(EXPERIMENTS[section.name], section, path.with_name(f"{path.stem}-{section.name}.svg"))
    path.write_text(text_of(report, path.stem), encoding="utf-8")


def _shown(report: Report) -> list[Section]:
    return [section for section in report.sections if section.name in EXPERIMENTS]


def text_of(report: Report, stem: str) -> str:
    """The page's Markdown. The names of its pictures start with `stem`."""
    return "\n".join(_lines(report, stem)) + "\n"


def _answers(services: Section, drawn: Section) -> Iterator[str]:
    """What the first two tables show."""
    fast = sum((line.values[WORST] or 0.0) >= FAST for line in services.lines)
    refused = max(line.values[REFUSED] or 0.0 for line in services.lines)
    yield (
        f"* **{len(services.lines)} services of known kinds**: in front of {fast}, a job has at least {FAST:g} of the "
        f"best speed in the worst of {len(SEEDS)} runs. No job has more than {refused:.2f} refusals a record."
    )
    (fast_enough, kind, both), (_, _, both_as_usual) = (
        [f"{line.values[column] or 0.0:.0f}" for column in (FAST_ENOUGH, KIND, BOTH)] for line in drawn.lines
    )
    yield (
        f"* **{CASES} services drawn at random**: {fast_enough} jobs have at least {FAST:g} of the best speed, {kind} "
        f"have at most {POLITE:g} refusals a record, and {both} have both. With a capacity of {USUAL}, {both_as_usual} "
        "have."
    )
    yield ""


def _lines(report: Report, stem: str) -> Iterator[str]:
    yield HEAD
    sections = {section.name: section for section in report.sections}
    if {"auto", "auto-drawn"} <= sections.keys():
        yield from _answers(sections["auto"], sections["auto-drawn"])
    yield METHOD.rstrip()
    if report.is_quick:
        yield from ("", QUICK)
    for section in _shown(report):
        experiment = EXPERIMENTS[section.name]
        yield from ("", f"## {experiment.title}", "", f"{experiment.setting}.", "")
        if section.series:
            yield from (f"![{experiment.title}: {experiment.y_label}]({stem}-{section.name}.svg)", "")
        yield from (experiment.reading, "")
        yield from table(section.cells())


# Pictures: a line for each contender, over time

OTHERS = [colour for colour in SERIES if colour != OURS]
DASHES = ("--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))


def _draw(experiment: Experiment, section: Section, path: Path) -> None:
    """Write the picture. Equal numbers give equal bytes.

    Raises:
        ImportError: matplotlib is missing.
    """
    with picture(path, f"{experiment.title}: {experiment.y_label}", 3.2) as axes:
        styles = [(OURS, "-", 2.0), *((colour, dash, 1.3) for colour, dash in zip(OTHERS, DASHES, strict=False))]
        for (name, points), (colour, dash, width) in zip(section.series.items(), styles, strict=False):
            times, values = zip(*points, strict=True)
            order = 3 if colour == OURS else 2
            axes.plot(times, values, color=colour, linestyle=dash, linewidth=width, label=name, zorder=order)
        _label(axes, experiment)


def _label(axes: Any, experiment: Experiment) -> None:
    axes.set_xlim(left=0)
    axes.set_xlabel("seconds")
    if experiment.log:
        axes.set_yscale("symlog", linthresh=1)
        axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.set_ylim(bottom=0)
    if experiment.span is not None:
        start, end, label = experiment.span
        axes.axvspan(start, end, color=MUTED, alpha=0.12, linewidth=0)
        axes.annotate(
            label, ((start + end) / 2, 1), xycoords=("data", "axes fraction"), ha="center", va="bottom", color=MUTED
        )
    axes.legend(frameon=False, fontsize=8, ncols=5, loc="upper center", bbox_to_anchor=(0.5, -0.16))
