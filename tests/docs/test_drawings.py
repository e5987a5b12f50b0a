"""The drawings of the pages are those of their scripts, and a page shows each with a text that replaces it."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from drawings import DRAWINGS, text_of

from tests.support import thorough_except

DOCS = Path(__file__).parents[2] / "docs"
SLOWEST = "guide/forecast.svg"  # it computes a whole forecast
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.slow
@pytest.mark.parametrize("drawing", thorough_except([each for each in DRAWINGS if each != SLOWEST], DRAWINGS))
def test_a_drawing_is_not_outdated(drawing: str) -> None:
    """If this fails, run `just drawings`."""
    assert (DOCS / drawing).read_text("utf-8") == text_of(drawing)


@pytest.mark.parametrize("drawing", [each for each in DRAWINGS if each.endswith(".svg")])
def test_a_drawing_is_shown_with_a_text_that_replaces_it(drawing: str) -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in DOCS.rglob("*.md"))
    texts = re.findall(rf"!\[([^\]]+)\]\((?:[\w./-]+/)?{re.escape(Path(drawing).name)}\)", pages)
    assert texts
    assert min(map(len, texts)) > 40


@pytest.mark.parametrize("drawing", [each for each in DRAWINGS if each.endswith(".svg")])
def test_a_screen_reader_finds_title_and_description(drawing: str) -> None:
    root = ET.parse(DOCS / drawing).getroot()
    assert root.get("role") == "img"
    for tag in ("title", "desc"):
        element = root.find(f"{SVG}{tag}")
        assert element is not None
        assert element.text
        assert element.get("id") in str(root.get("aria-labelledby")).split()


def test_the_screenshot_of_the_report_has_the_numbers_of_the_report() -> None:
    """If this fails, take docs/guide/report-run.png again, 900 pixels wide, and describe it where it is shown."""
    report = (DOCS / "guide/report-run.html").read_text(encoding="utf-8")
    for page in (DOCS / "index.md", DOCS.parent / "README.md"):
        [description] = re.findall(r"!\[([^\]]+)\]\([\w/]*report-run\.png\)", page.read_text(encoding="utf-8"))
        numbers = re.findall(r"\d[\d,]*", description)
        assert len(numbers) == 6
        assert [each for each in numbers if each not in report] == []
