"""The file: payloads by name in an SQLite database that several processes use at once.

Synchronous, and free of Trio. All its calls block, so they belong into a thread, one at a time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Final

from ._checkpoint import CheckpointError

__all__ = ["File"]

VERSION: Final = 1
APPLICATION: Final = 0x74616963  # "taic", in the header of each of our files

# How long a process waits for another one's transaction, which takes milliseconds.
BUSY_SECONDS: Final = 10.0

_SETTINGS: Final = (
    "PRAGMA cell_size_check = ON",
    # One file, and no second one in which commits pile up. EXTRA: a power cut must not bring the journal of a commit
    # that has returned back, and undo it with that. fullfsync: what macOS needs to mean it
    "PRAGMA journal_mode = DELETE",
    "PRAGMA synchronous = EXTRA",
    "PRAGMA fullfsync = ON",
)
_SCHEMA: Final = (
    "CREATE TABLE checkpoints (name TEXT PRIMARY KEY, payload BLOB NOT NULL, checksum BLOB NOT NULL) WITHOUT ROWID",
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {VERSION}",
)
_ROWS: Final = "SELECT name, payload, checksum FROM checkpoints"

_DAMAGED: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH)
_BUSY: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class File:
    """The last payload of each name, in a file.

    It is opened when it is used first. A row has a checksum of its name and payload, and where a name is not
    found the others are looked through: damaged bytes are an error, never another state and never none. A file of no
    bytes is a new one: a process that is killed before its first commit leaves it so.

    Args:
        path: The file; made unless it is there. Its directory must be there, and on a local disk.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None

    def load(self, name: str) -> bytes | None:
        """The payload committed last under this name, or None.

        Raises:
            CheckpointError: The file cannot be used.
        """
        with self._telling():
            connection = self._connected()
            found = connection.execute(f"{_ROWS} WHERE name = ?", (name,)).fetchall()
            for row in found or connection.execute(_ROWS):
                self._check_row(*row)
            return found[0][1] if found else None

    def commit(self, name: str, payload: bytes) -> None:
        """Keep this payload in place of the one before, on disk.

        Raises:
            CheckpointError: The file cannot be used.
        """
        row = (name, payload, _checksum(name, payload))
        with self._telling(), _transaction(self._connected()) as connection:
            connection.execute("INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?)", row)

    def close(self) -> None:
        """Close the file, if it was opened."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            if not self.path.parent.is_dir():
                raise CheckpointError(f"the file {self.path} cannot be made: make its directory first")
            self._connection = self._opened()
        return self._connection

    def _opened(self) -> sqlite3.Connection:
        if self.path.is_file() and self.path.stat().st_size == 1:  # SQLite would take it for an empty one
            raise self._damaged("it has only one byte")
        connection = sqlite3.connect(self.path, BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            is_new = self._is_new(connection)  # before anything is changed in a file that may be another's
            for setting in _SETTINGS:
                connection.execute(setting)
            if is_new:
                self._set_up(connection)
            self._check_integrity(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _is_new(self, connection: sqlite3.Connection) -> bool:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if application == APPLICATION and version == VERSION:
            return False
        if (application, version, tables) == (0, 0, 0):
            return True
        if application == APPLICATION:
            raise CheckpointError(
                f"the file {self.path} is of version {version}, and this release reads version {VERSION}: finish the "
                "job with the release that began it, or upgrade"
            )
        raise CheckpointError(
            f"the file {self.path} is a database, but not one of durable checkpoints: give another path"
        )

    def _set_up(self, connection: sqlite3.Connection) -> None:
        with _transaction(connection):
            if self._is_new(connection):  # still, now that nobody else can write
                for statement in _SCHEMA:
                    connection.execute(statement)

    def _check_integrity(self, connection: sqlite3.Connection) -> None:
        (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
        if verdict != "ok":
            raise self._damaged(" ".join(verdict.split()))

    def _check_row(self, name: object, payload: object, checksum: object) -> None:
        is_whole = isinstance(name, str) and isinstance(payload, bytes) and checksum == _checksum(name, payload)
        if not is_whole:
            raise self._damaged(f"the checksum of {name!r} is wrong")

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """A block whose SQLite errors come out as ours."""
        try:
            yield
        except sqlite3.Error as error:
            raise self._told(error) from error
        except UnicodeDecodeError as error:  # what the file holds as text, SQLite's own error messages included
            raise self._damaged(str(error)) from error

    def _told(self, error: sqlite3.Error) -> CheckpointError:
        # An error of Python's own has no code: it could not decode what it read
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        if code in _DAMAGED:
            return self._damaged(str(error))
        if code in _BUSY:
            return CheckpointError(f"the file {self.path} was locked by another process for {BUSY_SECONDS:g} s")
        return CheckpointError(f"the file {self.path} cannot be used: {error}")

    def _damaged(self, why: str) -> CheckpointError:
        return CheckpointError(
            f"the file {self.path} is damaged, or not one of durable checkpoints ({why}): restore it from a copy, "
            "together with the output that belongs to it, or delete both and begin anew"
        )


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """A block that is written as a whole, or not at all."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            with suppress(sqlite3.Error):  # the first error is the one to tell
                connection.execute("ROLLBACK")
        raise


def _checksum(name: str, payload: bytes) -> bytes:
    digest = blake2b(digest_size=16)
    for part in (name.encode(), payload):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.digest()
