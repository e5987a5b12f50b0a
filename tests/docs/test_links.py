"""Every link from a page to another file has a target."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [*sorted(ROOT.glob("*.md")), *DOCS]
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def path_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def anchors(page: Path) -> set[str]:
    """The fragments that GitHub makes of a page's headings."""
    headings = HEADING.findall(page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> list[str]:
    broken = []
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        if link.startswith(("https://", "http://")):
            continue
        path, _, fragment = link.partition("#")
        target = page if not path else page.parent / path
        if not target.exists() or (fragment and fragment not in anchors(target)):
            broken.append(link)
    return broken


@pytest.mark.parametrize("page", PAGES, ids=path_of)
def test_every_link_has_a_target(page: Path) -> None:
    assert broken_links(page) == []


@pytest.mark.parametrize("page", DOCS, ids=path_of)
def test_no_link_leaves_the_documentation(page: Path) -> None:
    """The site is built from `docs` only."""
    links = [link for link in LINK.findall(page.read_text(encoding="utf-8")) if "://" not in link]
    targets = {link: (page.parent / link.partition("#")[0]).resolve() for link in links}
    assert [link for link, target in targets.items() if not target.is_relative_to(ROOT / "docs")] == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A heading\n[here](#a-heading) [gone](gone.md) [nowhere](#no-heading)\n")
    assert broken_links(page) == ["gone.md", "#no-heading"]
