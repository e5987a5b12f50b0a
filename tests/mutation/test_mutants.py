"""The mutants of a module, and a test run with one of them."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.mutation.mutants import mutants_of
from tests.mutation.test_mutation import passes

MODULE = '''
"""A module."""


def share(part: int, whole: int = 1) -> float:
    """Text."""
    if part < 0 and not whole:
        raise ValueError("negative")
    return max(part, 0) / whole
'''


def test_a_mutant_has_one_change_and_the_name_of_its_function(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(MODULE)
    assert [each.name for each in mutants_of(path)] == [
        "share: 1 -> 2",
        "share: if part < 0 and (not whole): -> if True:",
        "share: if part < 0 and (not whole): -> if False:",
        "share: part < 0 and (not whole) -> not whole",
        "share: part < 0 and (not whole) -> part < 0",
        "share: part < 0 -> part <= 0",
        "share: 0 -> 1",
        "share: not whole -> whole",
        "share: raise ValueError('negative') -> pass",
        "share: return max(part, 0) / whole -> return None",
        "share: max(part, 0) / whole -> max(part, 0) * whole",
        "share: max(part, 0) -> min(part, 0)",
        "share: 0 -> 1 (2)",
    ]
    assert mutants_of(path)[5].source.count("<=") == 1
    assert {each.line for each in mutants_of(path)} == {5, 7, 8, 9}


def test_each_survivor_that_was_judged_is_a_mutant() -> None:
    judged = tomllib.loads(Path(__file__).with_name("survivors.toml").read_text())
    found = {path: {each.name for each in mutants_of(Path(path))} for path in judged}
    assert [name for path, names in judged.items() for name in names if name not in found[path]] == []


@pytest.mark.processes
def test_a_module_is_replaced_in_a_test_run(tmp_path: Path) -> None:
    path = Path("trio_asyncio_io/_values/checks.py")
    source = tmp_path / "mutant.py"
    tests = ("tests/core/test_checks.py",)
    source.write_text(path.read_text())
    assert passes(path, source, tests)
    source.write_text(path.read_text().replace("seconds > 0", "seconds >= 0"))
    assert not passes(path, source, tests)
