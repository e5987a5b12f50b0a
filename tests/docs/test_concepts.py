"""Each concept of Flink's asynchronous I/O has a page that shows a script with its output, and a drawing."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"
CONCEPTS = tomllib.loads((DOCS / "concepts.toml").read_text(encoding="utf-8"))["concept"]
PAGES = [page for page in sorted((DOCS / "learn").glob("*.md")) if page.name != "index.md"]
MAP = DOCS / "learn" / "flink-to-trio.md"

# Words of prose: neither code nor tables
MAX_WORDS = 900


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def prose_of(page: Path) -> str:
    without_code = re.sub(r"```.*?```|<!--.*?-->", "", text_of(page), flags=re.DOTALL)
    return "\n".join(line for line in without_code.splitlines() if not line.startswith(("|", "    ")))


def test_the_concepts_are_numbered() -> None:
    assert [concept["number"] for concept in CONCEPTS] == list(range(1, 35))


@pytest.mark.parametrize("concept", CONCEPTS, ids=lambda concept: concept["number"])
def test_a_concept_has_a_page_with_an_example_and_a_drawing(concept: dict[str, Any]) -> None:
    pages = "".join(text_of(page) for page in PAGES)
    assert (DOCS / concept["page"]).exists()
    assert f'cog example("{Path(concept["example"]).name}"' in pages
    assert (DOCS / concept["example"]).with_suffix(".out").read_text(encoding="utf-8").strip()
    assert f"({Path(concept['drawing']).name})" in text_of(DOCS / concept["page"])


@pytest.mark.parametrize("concept", CONCEPTS, ids=lambda concept: concept["number"])
def test_the_map_has_a_row_for_each_concept(concept: dict[str, Any]) -> None:
    [row] = [line for line in text_of(MAP).splitlines() if line.startswith(f"| {concept['number']} |")]
    assert concept["page"] == "learn/flink-to-trio.md" or f"({Path(concept['page']).name})" in row


def test_the_mean_grade_is_high_enough() -> None:
    assert mean(concept["grade"] for concept in CONCEPTS) >= 2.7


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_has_its_parts(page: Path) -> None:
    headings = re.findall(r"^## (.+)$", text_of(page), re.MULTILINE)
    assert {"In Flink", "On Trio"} <= set(headings)
    assert any(heading.startswith("Pitfalls") for heading in headings)
    assert headings[-1] == "Next"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_short(page: Path) -> None:
    assert len(prose_of(page).split()) <= MAX_WORDS


def test_the_index_lists_each_page_once() -> None:
    listed = re.findall(r"\]\(([\w-]+\.md)\)", text_of(DOCS / "learn" / "index.md"))
    assert sorted(listed) == [page.name for page in PAGES]
