"""The pages of docs/migrate: what the code before prints, the code after prints, too."""

from __future__ import annotations

from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
BEFORE = sorted(DOCS.glob("examples/come_from_*_before.py"))


@pytest.mark.parametrize("before", BEFORE, ids=lambda path: path.stem)
def test_both_scripts_print_the_same(before: Path) -> None:
    after = before.with_name(before.name.replace("_before.py", ".out"))
    assert before.with_suffix(".out").read_text(encoding="utf-8") == after.read_text(encoding="utf-8")
