"""The table at the top of the page: each criterion, and what was achieved."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .._report import Line, Report, Section
from ._experiment import Criterion, Experiment
from ._experiments import EXPERIMENTS
from .rivals import RIVALS

__all__ = ["summary"]

HEADER = ["experiment", "number", "criterion", "this project", "without gates", "best other algorithm"]


def summary(report: Report) -> list[list[str]]:
    """The header, and a row for each criterion."""
    return [HEADER, *(row for section in report.sections for row in _rows(EXPERIMENTS[section.name], section))]


def _rows(experiment: Experiment, section: Section) -> Iterator[list[str]]:
    name = f"[{experiment.title}](#{_anchor(experiment.title)})"
    for criterion in experiment.criteria:
        form = experiment.formats[criterion.column]
        ours = criterion.line(section.lines)
        verdict = "" if criterion.is_met(section.lines) else " (**not met**)"
        best = criterion.best([line for line in section.lines if line.name in RIVALS])
        yield [
            name,
            f"{criterion.column}, {ours.name}",
            criterion.text(form),
            f"{_cell(ours, criterion, form)}{verdict}",
            _cell(section.line(experiment.without), criterion, form),
            "" if best is None else f"{_cell(best, criterion, form)} ({best.name})",
        ]
        name = ""


def _cell(line: Line | None, criterion: Criterion, form: str) -> str:
    value = None if line is None else line.values[criterion.column]
    return "" if value is None else form.format(value)


def _anchor(title: str) -> str:
    """As Markdown makes it from a heading."""
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower())
