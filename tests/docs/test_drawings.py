"""The drawings of the pages are those that their scripts draw."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.drawings import SCRIPTS, draw

DOCS = Path(__file__).parents[2] / "docs"


def test_no_drawing_is_outdated(tmp_path: Path) -> None:
    """If this fails, run `just drawings`."""
    draw(tmp_path)
    for drawing in SCRIPTS:
        assert (DOCS / drawing).read_bytes() == (tmp_path / drawing).read_bytes()


@pytest.mark.parametrize("drawing", SCRIPTS)
def test_a_drawing_is_shown_with_a_text_that_replaces_it(drawing: str) -> None:
    [text] = re.findall(rf"!\[([^\]]+)\]\({drawing}\)", (DOCS / "trace.md").read_text(encoding="utf-8"))
    assert len(text) > 40
