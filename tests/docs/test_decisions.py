"""The index of the decisions lists each record once, and each record has the same three parts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DECISIONS = Path(__file__).parents[2] / "docs" / "explain" / "decisions"
RECORDS = sorted(DECISIONS.glob("[0-9]*.md"))
PARTS = ["Context", "Decision", "Price"]


def test_the_index_lists_each_record_with_its_title() -> None:
    rows = re.findall(r"^\| (\d{4}) \| \[(.+)\]\((.+)\) \|", (DECISIONS / "index.md").read_text(), re.MULTILINE)
    titles = [(path.name[:4], path.read_text().splitlines()[0].partition(". ")[2], path.name) for path in RECORDS]
    assert rows == titles


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.name[:4])
def test_a_record_has_a_context_a_decision_and_a_price(path: Path) -> None:
    assert re.findall(r"^\*\*(\w+)\.\*\*", path.read_text(), re.MULTILINE) == PARTS
