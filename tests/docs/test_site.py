"""The site of the documentation has every page, and asks no other host for anything."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zlib
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.docs.public import PUBLIC
from tests.docs.script import script
from tests.real.browser._chromium import NEEDS_CHROMIUM, chromium, program

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def listed() -> set[str]:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    return set(re.findall(r"([\w./-]+\.md)$", navigation, re.MULTILINE))


def test_the_navigation_has_each_page() -> None:
    """If this fails, add the page to `nav` in mkdocs.yml."""
    documents = {f"maintain/{name.lower()}" for name in script("documents").DOCUMENTS}
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    assert listed() == pages | documents


class Loaded(HTMLParser):
    """What a browser loads for a page, besides the page."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag in {"script", "img", "iframe", "source", "video"}:
            self.addresses.append(values.get("src") or "")
        elif tag == "link" and values.get("rel") not in {"prev", "next", "canonical"}:
            self.addresses.append(values.get("href") or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `just site` builds it, of a copy of the pages."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(DOCS, folder / "docs")
    script("documents").write(folder / "docs")
    (folder / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/docstrings.py", folder / ".ci")
    (folder / "mkdocs.yml").write_text((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), encoding="utf-8")
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


@pytest.mark.thorough
def test_each_page_is_built(site: Path) -> None:
    assert {page for page in listed() if not (site / page).with_suffix(".html").exists()} == set()


@pytest.mark.thorough
def test_other_projects_can_link_to_each_public_name(site: Path) -> None:
    inventory = (site / "objects.inv").read_bytes().split(b"\n", 4)[4]
    names = {line.split()[0] for line in zlib.decompress(inventory).decode().splitlines()}
    assert set(PUBLIC) - names == set()


@pytest.mark.thorough
def test_the_site_loads_everything_from_itself(site: Path) -> None:
    for page in site.rglob("*.html"):
        outside = [each for each in Loaded(page).addresses if re.match(r"(?:\w+:)?//", each)]
        assert outside == [], page.name
    for style in site.rglob("*.css"):
        assert re.findall(r"(?:url|@import)\(?['\" ]*(?:https?:)?//", style.read_text(encoding="utf-8")) == []


@pytest.mark.thorough
def test_what_the_pages_load_exists(site: Path) -> None:
    missing = {
        (page.name, each)
        for page in site.rglob("*.html")
        if page.name != "404.html"
        for each in Loaded(page).addresses
        if each and not each.startswith("data:") and not (page.parent / re.sub(r"[?#].*", "", each)).exists()
    }
    assert missing == set()


@pytest.mark.thorough
def test_the_list_for_language_models_is_at_the_root_and_its_links_exist(site: Path) -> None:
    links = re.findall(r"^- \[.+?\]\((.+?)\)", (site / "llms.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert {link.removesuffix(".html") + ".md" for link in links} == listed() - {"index.md"}
    assert [link for link in links if not (site / link).exists()] == []


@pytest.mark.processes
@pytest.mark.thorough
@NEEDS_CHROMIUM
def test_the_colours_follow_the_system_also_later(site: Path, tmp_path: Path) -> None:
    executable = program()
    assert executable is not None
    seen = []
    with chromium(executable, tmp_path) as page:
        for scheme in ("dark", "light", "dark"):
            page.show(site / "index.html", width=1200, scheme=scheme)
            seen.append(page.evaluate("getComputedStyle(document.body).colorScheme"))
    assert seen == ["dark", "light", "dark"]
