"""A report as a page of the documentation, with its figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from ._figures import FIGURES
from ._report import Report

__all__ = ["table", "text_of", "write_page"]

HEAD = """\
# Benchmarks

The cost of an element and the share of the highest possible throughput, compared with alternatives.
The benchmark itself (`benchmarks/`) writes this page. All numbers in a table come from one run, except other engines'.

    .ci/just bench --json docs/design/benchmarks.json --page docs/design/benchmarks.md \\
        --fill README.md $(grep -rl --include='*.md' figure: docs)
    .ci/just bench --quick                               # about five minutes, for rough figures
    .venv/bin/python -m benchmarks.instructions cda5cf4  # instructions of an element, compared with a commit (valgrind)
    .venv/bin/python -m benchmarks.instructions          # the same with idle gates, compared with none

Contenders are measured one after another, round after round, and ratios are taken within a round, so that a
disturbance affects all of them: the ratios hold on other machines, the times do not. "calls" and "peak in flight" are
counted in the tables that have these columns: a contender that calls twice or ignores the limit cannot be compared.
"(no timeout)" means that a contender sets no deadline; this operator and the bare worker loop set one for each call. A
peer that is not installed has a line without numbers.

Daft, Pathway and Flink are not measured any more. Their numbers are recorded: they ran in processes of their own, with
the code of commit b263e386 (`benchmarks/children`). Flink in Java calls a function in Java: it shows Flink's schedule,
and the price of Python.
"""
QUICK = (
    "\n**This was a quick run**: few and short rounds, only to check that everything works. Its figures are rough.\n"
)


def write_page(report: Report, path: Path) -> None:
    """Write the page, and its figures as `<stem>-<figure>.svg` in the same folder.

    Raises:
        ImportError: matplotlib is missing.
    """
    for figure in FIGURES:
        if report.section(figure.section) is not None:
            figure.draw(report, figure.path(path))
    path.write_text(text_of(report, path), encoding="utf-8")


def text_of(report: Report, path: Path) -> str:
    """The Markdown of the page at this path."""
    return "\n".join(_lines(report, {figure.section: figure.image(path) for figure in FIGURES})) + "\n"


def _lines(report: Report, images: dict[str, str]) -> Iterator[str]:
    yield HEAD.rstrip()
    if report.is_quick:
        yield QUICK.rstrip()
    yield from ("", _machine(report))
    shown: set[tuple[str, str]] = set()
    for section in report.sections:
        yield from ("", f"## {section.title}", "")
        if section.name in images:
            yield from (images[section.name], "")
        yield from table(section.cells())
        # A sentence that stands below an earlier table of the same part is not repeated
        notes = dict.fromkeys((section.part, sentence) for sentence in section.notes.split(". "))
        new = ". ".join(sentence for part, sentence in notes if (part, sentence) not in shown)
        if new:
            yield from ("", f"{new[:1].upper()}{new[1:]}.")
        shown |= notes.keys()


def _machine(report: Report) -> str:
    machine = report.machine
    packages = ", ".join(f"{name} {version}" for name, version in machine.get("packages", {}).items())
    return (
        f"Measured on {machine.get('cores')} cores, {machine.get('system')}, Python {machine.get('python')}, with "
        f"{packages}; the load was {machine.get('load', 0.0):.1f} at the start."
    )


def table(rows: Iterable[list[str]]) -> Iterator[str]:
    """The lines of a Markdown table; the first row is its header."""
    header, *lines = rows
    yield _row(header)
    yield "|" + "|".join("---" if not number else "---:" for number in range(len(header))) + "|"
    for line in lines:
        yield _row(line)


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
