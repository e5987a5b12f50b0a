"""Tests that share a JVM or a server run in the same process of pytest-xdist."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.scheduling import LONGEST, group_of, sort_by_length

ROOT = Path(__file__).parents[2]


def test_the_tests_of_a_folder_in_real_are_one_group() -> None:
    groups = {group_of(f"tests/real/demo/{name}") for name in ("test_flights.py::test_a", "test_llm.py::test_b[x::y]")}
    assert groups == {"tests/real/demo"}


def test_the_tests_of_spark_are_two_groups_of_about_one_length() -> None:
    files = sorted(ROOT.glob("tests/real/spark/test_*.py"))
    sizes: Counter[str] = Counter()
    for path in files:
        sizes[group_of(f"tests/real/spark/{path.name}::test_a")] += path.read_text().count("def test_")
    assert sizes.keys() == set(LONGEST[:2])
    assert max(sizes.values()) < 1.5 * min(sizes.values())


def test_any_other_file_is_a_group() -> None:
    assert group_of("tests/core/test_keyed.py::TestKeyed::test_a[1]") == "tests/core/test_keyed.py"


def test_the_longest_groups_come_first_and_then_those_with_most_tests() -> None:
    nodeids = ["tests/a.py::a", "tests/b.py::a", "tests/b.py::b", "tests/real/spark/test_c.py::a"]
    items = [SimpleNamespace(nodeid=nodeid) for nodeid in nodeids]
    sort_by_length(items)  # type: ignore[arg-type]
    assert [item.nodeid for item in items] == [nodeids[3], nodeids[1], nodeids[2], nodeids[0]]


@pytest.mark.parametrize("group", LONGEST)
def test_the_longest_groups_exist(group: str) -> None:
    assert (ROOT / group.partition(" ")[0]).exists()
