"""The maps of docs/design/every-interleaving.md are complete, and keep what the page says."""

from __future__ import annotations

from pathlib import Path

import pytest
from pictures.interleavings import PLACES, states
from pictures.runs import script

from tests.docs.script import script as ci_script
from tests.mutation.test_planted import BUGS, STEPS
from trio_asyncio_io._core.queue import CompletionOrder, InputOrder, Order

ROOT = Path(__file__).parents[2]
LEAVING = PLACES.index("leaving")


def places(order: type[Order]) -> set[tuple[int, int]]:
    return {(PLACES.index(first), PLACES.index(second)) for edge in states(order) for first, second in edge}


@pytest.mark.parametrize(("order", "steps", "nodes"), [(InputOrder, 32, 22), (CompletionOrder, 41, 27)])
def test_two_records_have_the_states_of_the_picture_and_end_only_when_both_are_gone(
    order: type[Order], steps: int, nodes: int
) -> None:
    edges = states(order)
    assert (len(edges), len(places(order))) == (steps, nodes)
    left = {before for before, _ in edges}
    assert {after for _, after in edges} - left == {("gone", "gone")}


def test_only_without_an_order_does_the_second_record_leave_before_the_first() -> None:
    assert all(first >= LEAVING for first, second in places(InputOrder) if second >= LEAVING)
    ahead = places(CompletionOrder) - places(InputOrder)
    assert len(ahead) == 5
    assert all(second >= LEAVING and first < second for first, second in ahead)


@pytest.mark.parametrize("ticket", ["FLINK-30477", "FLINK-38082", "FLINK-40456"])
def test_each_race_exists_without_its_cure_alone(ticket: str) -> None:
    races = script("flink_races")
    without, _ = races.explore(lambda record: races.flink(record, races.RACES.keys() - {ticket}))
    assert list(without) == [races.RACES[ticket]]
    assert races.explore(races.loop) == ({}, 11)


def test_a_table_of_the_page_sums_the_counts_of_the_settings() -> None:
    source = "SMALL: Table = [(12, 3, Setting()), (30, 4, Setting(records=3))]\nOTHER = [(1, 1, Setting())]"
    assert list(ci_script("explored").tables_of(source)) == [("SMALL", [(12, 3), (30, 4)])]


def test_the_readme_sums_the_tables() -> None:
    explored = ci_script("explored")
    modules = [path.read_text(encoding="utf-8") for path in explored.FOLDER.glob("test_*.py")]
    counts = [each for module in modules for _, table in explored.tables_of(module) for each in table]
    states = sum(states for _, states in counts)
    assert f"{len(counts)} settings with {states:,} states" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_page_counts_the_planted_bugs() -> None:
    text = (ROOT / "docs" / "design" / "every-interleaving.md").read_text(encoding="utf-8")
    page = " ".join(text.split())
    missed = sum("survives" in bug for bug in BUGS)
    assert f"Of {len(BUGS)} planted bugs" in page
    assert f"the exploration finds {len(BUGS) - missed}, each with a trace of at most {STEPS} steps" in page
    assert f"the reason for each of the other {missed}:" in page
