"""The timelines of the tutorials are those that their scripts draw, and pages show them with a text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.tutorial import TIMELINES, draw

DOCS = Path(__file__).parents[2] / "docs"
TUTORIALS = ["ten-minutes-trio.md", "ten-minutes-spark.md"]
WORDS = 1200


def test_no_timeline_is_outdated(tmp_path: Path) -> None:
    """If this fails, run `just drawings`."""
    draw(tmp_path)
    for drawing in TIMELINES:
        assert (DOCS / drawing).read_bytes() == (tmp_path / drawing).read_bytes(), drawing


@pytest.mark.parametrize("drawing", TIMELINES)
def test_a_timeline_is_shown_with_a_text_that_replaces_it(drawing: str) -> None:
    path = Path(drawing)
    pages = "".join(page.read_text(encoding="utf-8") for page in (DOCS / path.parent).glob("*.md"))
    [text] = re.findall(rf"!\[([^\]]+)\]\({path.name}\)", pages)
    assert len(text) > 40


@pytest.mark.parametrize("name", TUTORIALS)
def test_a_tutorial_is_short(name: str) -> None:
    page = (DOCS / "start" / name).read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)
    assert len(prose.split()) <= WORDS
