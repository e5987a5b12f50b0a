"""The pages for language models are described by their first sentences."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.script import script

PAGE = """\
# My job is slow

1. **Measure** it. Then go on.

* a point

| a | table |
|---|---|

**The table** has [each limit](limits.md). The rest is below.
"""


def test_a_page_is_described_by_its_first_sentence_without_marks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    llms = script("llms")
    (tmp_path / "slow.md").write_text(PAGE)
    monkeypatch.setattr(llms, "DOCS", tmp_path)
    assert llms._line(None, "slow.md") == "- [My job is slow](slow.html): The table has each limit.\n"
