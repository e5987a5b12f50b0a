"""The pages: examples are those of docs/examples, tables are complete, and documents that they name exist."""

from __future__ import annotations

import argparse
import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.wheel import ROOT
from trio_asyncio_io import Statistics
from udfs import CarryOver
from udfs.demo import __main__ as demo

PAGES = [
    *sorted(ROOT.glob("*.md")),
    *(page for page in sorted(ROOT.glob("docs/**/*.md")) if page.parent.name != "changelog.d"),
]
DOCUMENTS = {path.name for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]}
WITH_EXAMPLES = [page for page in PAGES if "<!-- [[[cog " in page.read_text(encoding="utf-8")]
INCLUDED = re.compile(r"<!-- \[\[\[cog (.*?)\]\]\] -->\n(.*?)<!-- \[\[\[end\]\]\] -->\n", re.DOTALL)
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WIDTH = 88


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


@pytest.mark.thorough
def test_no_page_shows_an_outdated_example() -> None:
    """If this fails, run `just pages`."""
    command = [sys.executable, "-m", "cogapp", "--check", "-I", str(ROOT / ".ci"), "-p", "from pages import example"]
    done = subprocess.run([*command, *WITH_EXAMPLES], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_all_python_of_a_page_is_included_from_a_script(page: Path) -> None:
    by_hand = INCLUDED.sub("", text_of(page))
    assert [body for language, body in FENCE.findall(by_hand) if language == "python"] == []


def test_every_script_is_in_a_page() -> None:
    shown = {script for page in WITH_EXAMPLES for script in re.findall(r'cog example\("(\w+\.py)"', text_of(page))}
    assert shown == {path.name for path in (ROOT / "docs" / "examples").glob("*.py")}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_line_of_python_is_too_wide_for_a_page(page: Path) -> None:
    bodies = [body for language, body in FENCE.findall(text_of(page)) if language == "python"]
    assert [line for body in bodies for line in body.splitlines() if len(line) > WIDTH] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_names_only_documents_that_exist(page: Path) -> None:
    assert set(re.findall(r"(?<![\w.-])[\w-]+\.md\b", text_of(page))) - DOCUMENTS == set()


@pytest.mark.parametrize("page", [ROOT / "README.md"], ids=lambda page: page.name)
def test_the_readme_shows_no_image_from_the_repository(page: Path) -> None:
    """A package index shows the README and has no other file."""
    assert re.findall(r"!\[[^\]]*\]\((?!https://)", text_of(page)) == []


def table_of(page: str, heading: str) -> str:
    """The section below this heading."""
    _, _, rest = text_of(ROOT / "docs" / page).partition(f"{heading}\n")
    assert rest, heading
    return re.split(r"^#+ ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def first_cells(section: str) -> set[str]:
    rows = [line.split(" | ")[0] for line in section.splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row)}


def test_the_table_of_statistics_has_every_number() -> None:
    fields = {field.name for field in dataclasses.fields(Statistics)}
    assert fields <= first_cells(table_of("reference/operator/statistics.md", "# Statistics"))


def test_the_table_of_carry_over_has_every_argument() -> None:
    fields = {field.name for field in dataclasses.fields(CarryOver)}
    assert fields <= first_cells(table_of("reference/spark/carry-over.md", "# Carry over stragglers of a micro-batch"))


def test_the_table_of_the_demo_has_every_option(monkeypatch: pytest.MonkeyPatch) -> None:
    parsers: list[argparse.ArgumentParser] = []
    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", lambda self, _: parsers.append(self))
    demo._options([])
    options = {option for action in parsers[0]._actions for option in action.option_strings if option.startswith("--")}
    shown = {cell.split()[0] for cell in first_cells(table_of("start/flights.md", "## Its options"))}
    assert {cell for cell in shown if cell.startswith("--")} == options - {"--help"}
