"""A report as a page of the documentation, with its figures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from ._figures import FIGURES
from ._prose import number
from ._report import Report

WORDS = Path(__file__).with_name("page.md")
BLOCK = re.compile(r"\n(?=\* |\n)")
PLACE = re.compile(r"\[\[(.*?)\]\]")  # section | line | column, and a format if it is not that of the section
QUICK = "\n**This was a quick run**: few and short rounds, to check that everything works. Its figures are rough."


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
    yield from (*_words(report), "", *_runs(report))
    if report.is_quick:
        yield QUICK
    shown: set[tuple[str, str]] = set()
    for section in report.sections:
        yield from ("", f"## {section.title}", "")
        if section.name in images:
            yield from (images[section.name], "")
        yield from table(section.cells())
        # A sentence that stands below an earlier table of the same part is not repeated
        sentences = [*section.notes.split(". "), f"Part `{section.part}`"]
        notes = dict.fromkeys((section.part, sentence) for sentence in sentences)
        new = ". ".join(sentence for part, sentence in notes if (part, sentence) not in shown)
        if new:
            yield from ("", f"{new[:1].upper()}{new[1:]}.")
        shown |= notes.keys()


def _words(report: Report) -> Iterator[str]:
    """The words of `page.md`, without the answers whose numbers the report has not."""
    for block in BLOCK.split(WORDS.read_text(encoding="utf-8").rstrip()):
        with suppress(LookupError):
            yield PLACE.sub(lambda match: number(match[1], report), block)


def _runs(report: Report) -> Iterator[str]:
    """The machine and the versions, with the parts that they hold for."""
    runs: dict[str, list[str]] = {}
    for part, machine in report.machines.items():
        packages = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
        run = (
            f"commit {machine['commit']}, {machine['cores']} cores, {machine['system']}, Python {machine['python']}, "
            f"with {packages}; the load was {machine['load']:.1f} at the start."
        )
        runs.setdefault(run, []).append(f"`{part}`")
    for run, parts in runs.items():
        yield f"* {', '.join(parts)}: {run}"


def table(rows: Iterable[list[str]]) -> Iterator[str]:
    """The lines of a Markdown table; the first row is its header."""
    header, *lines = rows
    yield _row(header)
    yield "|" + "|".join("---" if not number else "---:" for number in range(len(header))) + "|"
    for line in lines:
        yield _row(line)


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
