"""The pages of docs/come-from: what the code before prints, the code after prints, too."""

from __future__ import annotations

from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
BEFORE = sorted(DOCS.glob("examples/come_from_*_before.py"))
WORDS = 400


@pytest.mark.parametrize("before", BEFORE, ids=lambda path: path.stem)
def test_both_scripts_print_the_same(before: Path) -> None:
    after = before.with_name(before.name.replace("_before.py", ".out"))
    assert before.with_suffix(".out").read_text(encoding="utf-8") == after.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", sorted(DOCS.glob("come-from/*.md")), ids=lambda path: path.stem)
def test_a_page_is_short(page: Path) -> None:
    prose = "".join(page.read_text(encoding="utf-8").split("```")[::2])
    assert len(prose.split()) <= WORDS
