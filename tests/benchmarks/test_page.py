"""The page contains only what is in the report."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks._figures import FIGURES
from benchmarks._page import text_of, write_page
from benchmarks._report import Report

PAGE = Path("page.md")


def test_the_page_names_the_machine(report: Report) -> None:
    assert "2 cores, Linux, Python 3.11.7, with trio 0.35.0; the load was 0.5" in text_of(report, PAGE)


def test_each_section_is_a_table_below_its_heading(report: Report) -> None:
    text = text_of(report, PAGE)
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Overhead: one turn", "Cancelling"]
    image = FIGURES[0].image(PAGE)
    assert f"## Overhead: one turn\n\n{image}\n\n|  | μs/element | ratio | peak in flight |\n" in text
    assert "| ordered | 14.0 | 1.40 | 100 |" in text
    assert "| aiostream (no timeout): not installed: .ci/just bench installs it |  |  |  |" in text
    assert "\nMedian of 3 alternating rounds.\n" in text


def test_a_quick_run_is_marked_as_one(report: Report) -> None:
    assert "quick run" not in text_of(report, PAGE)
    assert "**This was a quick run**" in text_of(Report(True, report.sections, report.machine), PAGE)


@pytest.mark.slow
def test_figures_are_in_the_folder_of_the_page_and_reproducible(report: Report, tmp_path: Path) -> None:
    written = []
    for folder in ("one", "two"):
        page = tmp_path / folder / "page.md"
        page.parent.mkdir()
        write_page(report, page)
        written.append({each.name: each.read_bytes() for each in page.parent.iterdir()})
    assert sorted(written[0]) == ["page-overhead.svg", "page.md"]  # the report has nothing for the others
    assert written[0] == written[1]
    picture = written[0]["page-overhead.svg"].decode()
    assert "unordered" in picture
    assert "dc:date" not in picture
