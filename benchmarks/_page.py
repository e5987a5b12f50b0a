"""A report as a page of the documentation, with its figures, and its numbers in hand-written pages.

So no two pages disagree. A page marks each number with its source: section, line, column and, optionally, a format.

    <!--figure: http | httpx, its own pool | ratio | {:.0f}-->29<!--/figure--> times as long
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from ._figures import FIGURES
from ._report import Report

WORDS = Path(__file__).with_name("page.md")
BLOCK = re.compile(r"\n(?=\* |\n)")
PLACE = re.compile(r"\[\[(.*?)\]\]")  # section | line | column, and a format if it is not that of the section
FIGURE = re.compile(r"(<!--figure: (?P<place>[^>]*?)-->)[^<]*(<!--/figure-->)")
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
    """Each machine with its versions, after the parts that it has run."""
    runs: dict[str, list[str]] = {}
    for part, machine in report.machines.items():
        packages = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
        run = (
            f"commit {machine['commit']}, {machine['cores']} cores, {machine['system']}, Python {machine['python']}, "
            f"with {packages}"
        )
        runs.setdefault(run, []).append(f"`{part}` (load {machine['load']:.1f})")
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


# Numbers


def filled(text: str, report: Report) -> str:
    """The page with each marked number taken from the report.

    Raises:
        LookupError: The report has no such number; the message has the mark.
    """
    return FIGURE.sub(lambda match: f"{match[1]}{number(match['place'], report)}{match[3]}", text)


def number(place: str, report: Report) -> str:
    """The number at "section | line | column" or "section | line | column | format", as text.

    Raises:
        LookupError: The report has no such number.
    """
    name, line_name, column, *form = (part.strip() for part in place.split("|"))
    section = report.section(name)
    line = section and section.line(line_name)
    value = line.values.get(column) if line else None
    if section is None or value is None:
        raise LookupError(f"the report has no number for the mark <!--figure: {place}-->")
    return (form[0] if form else section.formats[column]).format(value).replace("%", " %")
