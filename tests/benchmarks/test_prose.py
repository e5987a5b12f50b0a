"""Numbers in the pages come from the report."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks._page import filled, text_of
from benchmarks._report import Report

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def of_the_pages() -> Report:
    """The report whose numbers are in the pages."""
    return Report.read(DOCS / "design" / "benchmarks.json")


def test_a_marked_number_is_taken_from_the_report(report: Report) -> None:
    old = "it takes <!--figure: overhead | ordered | ratio-->9<!--/figure--> times as long"
    new = "it takes <!--figure: overhead | ordered | ratio-->1.40<!--/figure--> times as long"
    assert filled(old, report) == new
    assert filled(new, report) == new


def test_a_mark_may_have_its_own_format(report: Report) -> None:
    mark = "<!--figure: overhead | ordered | ratio | {:.0%}-->"
    assert filled(f"{mark}?<!--/figure-->", report) == f"{mark}140 %<!--/figure-->"


@pytest.mark.parametrize("place", ["nothing | ordered | ratio", "overhead | absent | ratio", "overhead | ordered | no"])
def test_a_mark_without_a_number_in_the_report_is_an_error(report: Report, place: str) -> None:
    with pytest.raises(LookupError, match="the report has no number"):
        filled(f"<!--figure: {place}-->1<!--/figure-->", report)


def test_every_number_of_a_page_is_that_of_the_report(of_the_pages: Report) -> None:
    texts = {page: page.read_text(encoding="utf-8") for page in (ROOT / "README.md", *DOCS.rglob("*.md"))}
    assert [str(page) for page, text in texts.items() if filled(text, of_the_pages) != text] == []


def test_the_benchmark_page_is_that_of_the_report(of_the_pages: Report) -> None:
    page = DOCS / "design" / "benchmarks.md"
    assert text_of(of_the_pages, page) == page.read_text(encoding="utf-8")
