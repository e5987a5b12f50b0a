"""The file in which the leases of budgets outlive their driver."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from copy import copy

from .budgets import BudgetGrant, BudgetRequest, BudgetSource, Holding

LOCKED_SECONDS = 30.0  # for another driver with the same file
CREATE = "CREATE TABLE IF NOT EXISTS budgets (name TEXT PRIMARY KEY, leased REAL NOT NULL) WITHOUT ROWID"


def check_file(path: str) -> None:
    """Create the file, if there is none.

    Raises:
        OSError: It cannot be used.
    """
    try:
        with _locked(path) as connection:  # fails if the file can only be read
            connection.execute(CREATE)
    except sqlite3.Error as error:
        raise OSError(
            f"path={path!r} cannot be used for budgets ({error}): give the path of a file on a disk"
        ) from error


def grant_from_file(source: BudgetSource, path: str, now: float, request: BudgetRequest) -> BudgetGrant:
    """Grant what the file still has, and write it to the file first. Several drivers may use one file.

    Args:
        source: The leases of the budget in this driver.
        path: The file.
        now: The instant of the grant, on a clock of this driver.
        request: The request of a process.

    Raises:
        sqlite3.Error: The file cannot be read or written. Nothing was granted.
    """
    before = copy(source.holdings.get(request.holder, Holding()))
    try:
        with _locked(path) as connection:
            row = connection.execute("SELECT leased FROM budgets WHERE name = ?", (request.name,)).fetchone()
            source.leased = row[0] if row else 0.0
            grant = source.grant(now, request)
            connection.execute("INSERT OR REPLACE INTO budgets VALUES (?, ?)", (request.name, source.leased))
    except sqlite3.Error:
        source.holdings[request.holder] = before
        raise
    return grant


@contextmanager
def _locked(path: str) -> Iterator[sqlite3.Connection]:
    """A connection that has the file to itself, and commits at the end of the block."""
    with closing(sqlite3.connect(path, timeout=LOCKED_SECONDS, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("BEGIN IMMEDIATE")
        yield connection
        connection.execute("COMMIT")
