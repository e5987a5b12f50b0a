"""The tutorials are short."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

START = Path(__file__).parents[2] / "docs" / "start"
WORDS = 1200


@pytest.mark.parametrize("name", ["flights", "ten-minutes-spark", "ten-minutes-trio"])
def test_a_tutorial_takes_ten_minutes_to_read(name: str) -> None:
    page = (START / f"{name}.md").read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)
    assert len(prose.split()) <= WORDS
