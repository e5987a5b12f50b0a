"""The linter of the pages finds each fault where it is, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.script import script

RETIRED = "all the " + "same"  # not in one piece, because the linter reads this file, too
FAULTS = f"""\
# A page

[here](#a-page) [gone](gone.md)
[nowhere](#no-heading)
[outside](../README.md)
[built](maintain/security.md)

A long sentence that LONG.

```python
by_hand = 1
```

A record is {RETIRED}.

It takes
<!--figure: overhead | ordered | ratio-->1.4<!--/figure--> times.
"""


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    linter = script("check_pages")
    tmp_path.joinpath("README.md").write_text("# Read me\n\n![a picture](docs/page.md)\n![another](README.md)\n")
    examples = tmp_path / "docs/examples"
    examples.mkdir(parents=True)
    examples.joinpath("unused.py").write_text("")
    tmp_path.joinpath("docs/maintain").mkdir()
    tmp_path.joinpath("docs/maintain/security.md").write_text("# Security\n\n[a page beside it](security.md)\n")
    tmp_path.joinpath("docs/page.md").write_text(FAULTS.replace("LONG", "word " * linter.MAX_WORDS))
    monkeypatch.setattr(linter, "ROOT", tmp_path)
    monkeypatch.setattr(linter, "DOCS", tmp_path / "docs")
    assert linter.main() == 1
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    "fault",
    [
        "docs/page.md:3: gone.md does not exist",
        "docs/page.md:4: #no-heading has no such heading",
        "docs/page.md:5: ../README.md leaves docs",
        "docs/page.md:6: maintain/security.md is not in git",
        "docs/page.md:8: a sentence of 39 words",
        "docs/page.md:10: Python that is not from docs/examples",
        f"docs/page.md:14: '{RETIRED}' is retired; write: nevertheless, anyway",
        "docs/page.md:17: a mark of a figure here breaks",
        "README.md:4: README.md: a package index shows only images of the site",
        "docs/examples/unused.py:1: no page shows this example",
    ],
)
def test_each_fault_is_found_once_and_in_its_line(fault: str, found: list[str]) -> None:
    assert len([line for line in found if line.startswith(fault)]) == 1, "\n".join(found)


def test_nothing_else_is_found(found: list[str]) -> None:
    assert len(found) == 10, "\n".join(found)
