"""The tables of the pages are complete."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

from tests.wheel import ROOT
from udfs import CarryOver
from udfs.demo import __main__ as demo


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def table_of(page: str, heading: str) -> str:
    """The section below this heading."""
    _, _, rest = text_of(ROOT / "docs" / page).partition(f"{heading}\n")
    assert rest, heading
    return re.split(r"^#+ ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def first_cells(section: str) -> set[str]:
    rows = [line.split(" | ")[0] for line in section.splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row)}


def test_the_table_of_carry_over_has_every_argument() -> None:
    fields = {field.name for field in dataclasses.fields(CarryOver)}
    assert fields <= first_cells(table_of("spark/streams.md", "## Carry over stragglers"))


def test_the_table_of_the_demo_has_every_option() -> None:
    actions = demo._parser()._actions
    options = {option for action in actions for option in action.option_strings if option.startswith("--")}
    shown = {cell.split()[0] for cell in first_cells(table_of("tutorial/flights.md", "## Its options"))}
    assert {cell for cell in shown if cell.startswith("--")} == options - {"--help"}
