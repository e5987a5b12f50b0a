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
# Resilience: gates and other algorithms, in front of the same services

What should a job do when its service is limited, slow or down? Each experiment runs the gates of this project, and
other algorithms, in front of the same simulated service. All of them run in the real operator, on a virtual clock and
with fixed random numbers, so each run has the same numbers on every machine. The command that writes this page:

    python -m benchmarks resilience --json docs/design/resilience.json --page docs/design/resilience.md

[Gates](../guide/gates.md) explains how to use what is compared here. Tests hold this project to criteria for these
numbers (`benchmarks/resilience`): short forms of the experiments in each run, and these in `just thorough`.
"""
OTHERS = """
## The other algorithms

The last four were written anew from their publications, in `benchmarks/resilience/rivals` of commit b263e386, and run
in front of the same services. That code is deleted, and `resilience.json` keeps the numbers: take them as orders of
magnitude. It also has those of more experiments, which commit 8f0d8521 runs.
"""
# By the name of their lines
ALGORITHMS = {
    "backoff only": "no gate: all slots, and retries with exponential backoff and full jitter, from 0.1 to 10 s",
    "a fixed share": "`RateLimit` with the service's rate, divided by the number of tasks",
    "AIMD": "a rate that falls to 0.7 x after a refusal, and rises by 1 per second each second (Chiu and Jain, 1989)",
    "client-side throttling": "a client refuses its own calls, with K = 2 (Site Reliability Engineering, chapter 21)",
    "Gradient2": "a limit of calls at once that follows the gradient of the latency (Netflix concurrency-limits)",
    "failsafe-go": "its adaptive limiter: thresholds of TCP Vegas, and correlations of latency and throughput",
}
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
    yield OTHERS
    rows = [["name", "algorithm"], *([*each] for each in ALGORITHMS.items())]
    yield from (line.replace("---:", "---") for line in table(rows))
    for section in _shown(report):
        experiment = EXPERIMENTS[section.name]
        yield from ("", f"## {experiment.title}", "", f"{experiment.setting}.", "")
        if section.series:
            yield from (f"![{experiment.title}: {experiment.y_label}]({stem}-{section.name}.svg)", "")
        yield from (experiment.reading, "")
        yield from table(section.cells())
