"""The how-to pages have one form: a script that can be copied first, then what to change, pitfalls and links."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(page for page in (ROOT / "docs" / "how-to").glob("*.md") if page.name != "index.md")
SCRIPTS = sorted((ROOT / "docs" / "examples").glob("*.py"))
WORDS = 400
STRATEGIES = {"DelayList", "ExponentialBackoff", "FixedDelay"}


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def prose_of(page: Path) -> str:
    """The page without its scripts and their output."""
    return re.sub(r"<!--.*?-->", "", re.sub(r"^```.*?^```$", "", text_of(page), flags=re.MULTILINE | re.DOTALL))


def headings_of(page: Path) -> list[str]:
    return re.findall(r"^## (.+)$", prose_of(page), re.MULTILINE)


def strategies_in(script: Path) -> list[ast.Call]:
    calls = [node for node in ast.walk(ast.parse(text_of(script))) if isinstance(node, ast.Call)]
    return [call for call in calls if isinstance(call.func, ast.Name) and call.func.id in STRATEGIES]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_how_to_is_short(page: Path) -> None:
    assert len(prose_of(page).split()) <= WORDS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_how_to_shows_code_before_the_text_that_explains_it(page: Path) -> None:
    before, fence, _ = text_of(page).partition("\n```")
    assert fence
    assert len(before.split()) < WORDS / 5


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_how_to_ends_with_pitfalls_and_links(page: Path) -> None:
    assert headings_of(page)[-1] == "Pitfalls"
    assert re.search(r"^See also: \[", prose_of(page), re.MULTILINE)


def test_the_index_has_every_how_to() -> None:
    listed = re.findall(r"^\| \[[^\]]+\]\(([\w-]+\.md)\)", text_of(ROOT / "docs" / "how-to" / "index.md"), re.MULTILINE)
    assert sorted(listed) == [page.name for page in PAGES]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_an_example_retries_only_transient_errors(script: Path) -> None:
    """Readers copy the retry of an example, and one on every exception repeats a 401 and a bug."""
    retried = [{each.arg: ast.unparse(each.value) for each in call.keywords} for call in strategies_in(script)]
    assert [each.get("retry_on") for each in retried if each.get("retry_on") != "transient"] == []
