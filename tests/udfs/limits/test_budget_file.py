"""The file of budgets: it has what its sources have leased, whatever is killed in between."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from udfs._limits.budgets import BudgetRequest, BudgetSource, check_file, grant_from_file


def lease(source: BudgetSource, path: str, holder: str, want: float, name: str = "books") -> float:
    return grant_from_file(source, path, 0.0, BudgetRequest(name, 10.0, holder, 1, 0.0, 0.0, 1.0, want)).lease


@pytest.fixture
def path(tmp_path: Path) -> str:
    made = str(tmp_path / "budgets")
    check_file(made)
    return made


def test_a_source_that_starts_again_knows_what_was_leased(path: str) -> None:
    assert lease(BudgetSource(), path, "first", 7.0) == 7.0
    assert lease(BudgetSource(), path, "second", 7.0) == pytest.approx(3.0)
    assert lease(BudgetSource(), path, "third", 7.0) == 0.0


def test_two_drivers_may_use_one_file(path: str) -> None:
    one, two = BudgetSource(), BudgetSource()
    leases = [lease(source, path, str(number), 3.0) for number, source in enumerate([one, two, one, two])]
    assert leases == [3.0, 3.0, 3.0, pytest.approx(1.0)]


def test_budgets_of_different_names_are_different(path: str) -> None:
    source = BudgetSource()
    assert [lease(source, path, "one", 10.0, name) for name in ("books", "maps")] == [10.0, 10.0]


def test_what_cannot_be_written_is_not_leased(path: str) -> None:
    source = BudgetSource()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TRIGGER full BEFORE INSERT ON budgets BEGIN SELECT RAISE(ABORT, 'disk full'); END")
    with pytest.raises(sqlite3.Error, match="disk full"):
        lease(source, path, "a", 7.0)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TRIGGER full")
    assert lease(source, path, "b", 8.0) == 8.0
    assert lease(source, path, "a", 7.0) == pytest.approx(2.0)


def test_a_file_that_is_none_is_an_error_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "text").write_text(
        "this is not a file of SQLite, and long enough to be recognized as something else" * 20
    )
    for path in (tmp_path / "text", tmp_path / "nowhere" / "budgets", tmp_path):
        with pytest.raises(
            OSError, match=r"cannot be used for budgets \(.*\): give the path of a file on a disk, in a folder that"
        ):
            check_file(str(path))


def test_a_file_that_was_deleted_leases_nothing(path: str) -> None:
    Path(path).unlink()
    with pytest.raises(sqlite3.Error):
        lease(BudgetSource(), path, "one", 1.0)
