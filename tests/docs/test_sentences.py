"""No sentence of a page is so long that a reader has to read it twice."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MAX_WORDS = 35

# Written from docstrings, messages and measurements, or once for all
OTHERS = (
    "reference/api/",
    "reference/errors.md",
    "explain/decisions/",
    "changelog.d/",
    "maintain/changelog.md",
    "benchmarks.md",
)
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *(page for page in sorted(DOCS.rglob("*.md")) if not page.relative_to(DOCS).as_posix().startswith(OTHERS)),
]

NOT_PROSE = re.compile(
    r"""<!--.*?-->      # a comment
    | ^```.*?^```       # code
    | ^\ {4}.*?$        # code, or a continued line of a nested list
    | ^\#.*?$ | ^\|.*?$ # a heading, a row of a table
    | !\[[^\]]*\]       # the description of a picture
    """,
    re.MULTILINE | re.DOTALL | re.VERBOSE,
)
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
BLOCK = re.compile(r"\n\s*\n|\n(?=\s*(?:[*-]|\d+\.) )")
END = re.compile(r"(?<=[.!?])[*_)\"”]*\s+")


def sentences(text: str) -> Iterator[str]:
    """The sentences of a page's paragraphs and lists. A piece of code in a line is one word."""
    plain = re.sub(r"`[^`]+`", "code", LINK.sub(r"\1", NOT_PROSE.sub("\n", text)))
    for block in BLOCK.split(plain):
        yield from END.split(" ".join(block.split()))


def words(sentence: str) -> int:
    return sum(any(map(str.isalnum, word)) for word in sentence.split())


def too_long(page: Path) -> list[str]:
    return [each for each in sentences(page.read_text(encoding="utf-8")) if words(each) > MAX_WORDS]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_sentence_is_too_long(page: Path) -> None:
    """If this fails, make two sentences of it."""
    assert too_long(page) == []


def test_a_long_sentence_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    long = "word " * MAX_WORDS + "end."
    page.write_text(f"Short one. [A](b.md) `x y`\n{long}\n\n* Item\n* {long}\n\n| {long} |\n\n```text\n{long}\n```\n")
    assert [words(each) for each in too_long(page)] == [MAX_WORDS + 3, MAX_WORDS + 1]
