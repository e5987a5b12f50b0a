"""The words that the glossary retires do not come back: in code, comments, messages, tests and pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ["trio_asyncio_io", "udfs", "benchmarks", "tests", "docs", ".ci", "."]
SUFFIXES = {".py", ".md", ".toml", "", ".out"}
GLOSSARY = {ROOT / "docs" / "reference" / "glossary.md", Path(__file__)}  # they name what they refuse

# A text that each match contains, which is found quickly; a pattern; and what to write instead
RETIRED = [
    ("is no ", r"(?<!there )\bis no (?!longer\b|more\b|way\b|need\b)", "is not a ..."),
    ("told", r"\btold\b", "reported, translated, named"),
    ("telling", r"\btelling\b", "reporting, translating, naming"),
    (
        " turn",
        r"\b(?:its|their|his|whose|one's|own|a|the|by|take|takes|of|next) turns?\b",
        "place in the output order, lock",
    ),
    ("so many as", r"\bso many as\b", "as many as, that many"),
    ("all the same", r"\ball the same\b", "nevertheless, anyway"),
    ("own accord", r"\bof (?:its|their) own accord\b", "itself, unprompted"),
    ("as far as ", r"\bas far as (?:they|it) comes?\b", "-"),
    ("there and then", r"\bthere and then\b", "immediately"),
    ("headline", r"\bheadlines?(?:_first)?\b", "traceback as a note"),
    ("trip", r"(?<!round )(?<!round-)\btrips?\b", "flush, submit, group commit"),
    ("letter", r"(?<!dead )(?<!dead-)(?<!dead_)(?<!capital )(?<!_)\bletters?\b", "dead letters"),
    ("bur", r"\b(?:bury|buried)\b", "dead-letter"),
    ("parcel", r"\bparcels?\b", "pair"),
    ("asleep", r"\basleep\b", "waiting"),
    ("strike", r"\bstrikes?\b", "expires, interrupts, fails"),
    ("struck", r"\bstruck\b", "expired, interrupted, failed"),
    ("parted", r"\bparted\b", "split"),
    ("members_of", r"\bmembers_of\b", "flatten"),
    ("is_echo_of", r"\bis_echo_of\b", "is_caused_by"),
    ("raise_as_it_is", r"\braise_as_it_is\b", "reraise"),
    ("door", r"\bdoors?\b", "entry point, public function, operator"),
    ("most", r"\bmost(?:=|: (?:int|most))", "max_rows"),
    ("asked", r"\b(?:what|whoever) (?:is|was) asked\b", "name it"),
    ("stand", r"\bstands? (?:for|beside|behind|in|at|above)\b", "represents, is"),
    ("beyond that", r"\bbeyond that\b", "-"),
    (" stead", r"\bin (?:its|their) stead\b", "instead"),
]


def files_of(source: str) -> list[Path]:
    folder = ROOT / source
    found = folder.iterdir() if source == "." else folder.rglob("*")
    return sorted(each for each in found if each.is_file() and each.suffix in SUFFIXES and each not in GLOSSARY)


def findings(path: Path) -> list[str]:
    text = path.read_text(errors="replace").lower()
    return [
        f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}: {match.group()!r}; write: {instead}"
        for part, pattern, instead in RETIRED
        if part in text
        for match in re.finditer(pattern, text)
    ]


@pytest.mark.parametrize("source", SOURCES)
def test_no_retired_word_is_used(source: str) -> None:
    files = files_of(source)
    assert files
    found = [line for path in files if "__pycache__" not in path.parts for line in findings(path)]
    assert not found, "\n" + "\n".join(found)


def test_each_match_of_a_pattern_contains_its_text() -> None:
    assert [part for part, pattern, _ in RETIRED if part not in pattern] == []


def test_a_retired_word_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("A watermark\nis no record.\n")
    assert findings(page) == ["page.md:2: 'is no '; write: is not a ..."]
