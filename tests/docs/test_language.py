"""The words that the glossary retires do not come back: in code, comments, messages, tests and pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ["trio_asyncio_io", "udfs", "benchmarks", "tests", "docs", ".ci", "."]
SUFFIXES = {".py", ".md", ".toml", "", ".out"}
GLOSSARY = {ROOT / "docs" / "reference" / "glossary.md", Path(__file__)}  # they name what they refuse

# A pattern, and what to write instead
RETIRED = {
    r"(?<!there )\bis no (?!longer\b|more\b|way\b|need\b)": "is not a ...",
    r"\b(told|telling)\b": "reported, translated, named",
    r"\b(?:its|their|his|whose|one's|own|a|the|by|take|takes|of|next) turns?\b": "place in the output order, lock",
    r"\bso many as\b": "as many as, that many",
    r"\ball the same\b": "nevertheless, anyway",
    r"\bof (?:its|their) own accord\b": "itself, unprompted",
    r"\bas far as (?:they|it) comes?\b": "-",
    r"\bthere and then\b": "immediately",
    r"\bheadlines?(?:_first)?\b": "traceback as a note",
    r"(?<!round )(?<!round-)\btrips?\b": "flush, submit, group commit",
    r"(?<!dead )(?<!dead-)(?<!dead_)(?<!capital )(?<!_)\bletters?\b": "dead letters",
    r"\b(?:bury|buried|parcels?|asleep)\b": "dead-letter, pair, waiting",
    r"\b(?:strikes?|struck)\b": "expires, interrupts, fails",
    r"\b(?:parted|members_of|is_echo_of|raise_as_it_is)\b": "split, flatten, is_caused_by, reraise",
    r"\bdoors?\b": "entry point, public function, operator",
    r"\bmost(?:=|: (?:int|Most|most))": "max_rows",
    r"\b(?:what|whoever) (?:is|was) (?:asked|told)\b": "name it",
    r"\bstands? (?:for|beside|behind|in|at|above)\b": "represents, is",
    r"\bbeyond that\b": "-",
    r"\bin (?:its|their) stead\b": "instead",
}


def files_of(source: str) -> list[Path]:
    folder = ROOT / source
    found = folder.iterdir() if source == "." else folder.rglob("*")
    return sorted(each for each in found if each.is_file() and each.suffix in SUFFIXES and each not in GLOSSARY)


def findings(path: Path) -> list[str]:
    text = path.read_text(errors="replace")
    return [
        f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}: {match.group()!r}; write: {instead}"
        for pattern, instead in RETIRED.items()
        for match in re.finditer(pattern, text, re.IGNORECASE)
    ]


@pytest.mark.parametrize("source", SOURCES)
def test_no_retired_word_is_used(source: str) -> None:
    files = files_of(source)
    assert files
    found = [line for path in files if "__pycache__" not in path.parts for line in findings(path)]
    assert not found, "\n" + "\n".join(found)


def test_a_retired_word_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("A watermark\nis no record.\n")
    assert findings(page) == ["page.md:2: 'is no '; write: is not a ..."]
