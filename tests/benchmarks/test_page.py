"""The page contains only what is in the report."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks._page import text_of, write_page
from benchmarks._report import Line, Report, Section

PAGE = Path("page.md")
PAGES = Path(__file__).parents[2] / "docs" / "design"


def test_the_page_names_the_commit_and_the_machine_of_each_part(report: Report) -> None:
    machine = "2 cores, Linux, Python 3.11.7, with trio 0.35.0"
    runs = [f"* `operator` (load 0.5): commit 1234abcd, {machine}", f"* `scale` (load 0.5): commit 5678ef01, {machine}"]
    text = text_of(report, PAGE)
    assert "\n".join(["", *runs, ""]) in text


def test_parts_of_one_commit_and_machine_share_a_line(report: Report) -> None:
    machine = report.machines["operator"]
    report.put("options", [], {**machine, "load": 1.5})
    text = text_of(report, PAGE)
    assert "\n* `operator` (load 0.5), `options` (load 1.5): commit 1234abcd," in text


def test_sentences_end_with_their_part(report: Report) -> None:
    text = text_of(report, PAGE)
    assert "\nMedian of 3 alternating rounds. Part `operator`.\n" in text


def test_the_page_begins_with_the_answers_whose_numbers_the_report_has(report: Report) -> None:
    assert answers(text_of(report, PAGE)) == []
    sizes = Line("ordered", {"waits for its place in the order": 221.4, "waits for a slot": 189.0})
    report.put("options", [Section("Memory", "", dict.fromkeys(sizes.values, "{:,.0f}"), [sizes], "memory")], {})
    [answer] = answers(text_of(report, PAGE))
    assert "How much memory" in answer
    assert "221 bytes for a result" in answer
    assert "189 for a record that waits for a slot" in answer


def test_the_recorded_page_has_seven_answers() -> None:
    recorded = PAGES / "benchmarks.md"
    assert len(answers(recorded.read_text(encoding="utf-8"))) == 7


def answers(text: str) -> list[str]:
    """The items of the list before the first heading of a section."""
    return re.findall(r"^\* (.+?)(?=\n\* |\n\n|\Z)", text.split("\n## ", maxsplit=1)[0], re.MULTILINE | re.DOTALL)


def test_a_quick_run_is_marked_as_one(report: Report) -> None:
    assert "quick run" not in text_of(report, PAGE)
    assert "**This was a quick run**" in text_of(Report(True, report.sections, report.machines), PAGE)


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
