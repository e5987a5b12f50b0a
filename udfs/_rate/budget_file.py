"""The file in which the leases of budgets outlive their driver."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

from .budgets import BudgetSource

__all__ = ["check_file", "kept"]

LOCKED_SECONDS = 30.0  # for another driver with the same file
CREATE = "CREATE TABLE IF NOT EXISTS budgets (name TEXT PRIMARY KEY, leased REAL NOT NULL) WITHOUT ROWID"


def check_file(path: str) -> None:
    """Create the file, if there is none.

    Raises:
        OSError: It cannot be used.
    """
    try:
        with closing(_connected(path)) as connection:
            connection.execute(CREATE)
    except sqlite3.Error as error:
        raise OSError(
            f"path={path!r} cannot be used for budgets ({error}): give the path of a file on a disk"
        ) from error


@contextmanager
def kept(source: BudgetSource, path: str, name: str) -> Iterator[None]:
    """In the block, the source is as the file says. Afterwards, the file is as the source says, whatever is killed.

    Several drivers may use one file.

    Raises:
        sqlite3.Error: The file cannot be read or written.
    """
    with closing(_connected(path)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        row = connection.execute("SELECT leased FROM budgets WHERE name = ?", (name,)).fetchone()
        source.leased = row[0] if row else 0.0
        yield
        connection.execute("INSERT OR REPLACE INTO budgets VALUES (?, ?)", (name, source.leased))
        connection.execute("COMMIT")


def _connected(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, LOCKED_SECONDS, isolation_level=None)
    connection.execute("PRAGMA synchronous = FULL")
    return connection
