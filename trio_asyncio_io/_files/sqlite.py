"""SQLite files of this project, which an application id and a version identify.

A `Database` blocks. Call it in a `FileThread`.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, TypeVar

import trio

R = TypeVar("R")

# Upper limit of the wait for a lock. Another process holds one for milliseconds, unless it has stopped.
BUSY_SECONDS: Final = 10.0

_RETRY_SECONDS: Final = 0.01
_DAMAGED: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH)
_BUSY: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)

# SQLite quotes a damaged file in its messages, and Python may fail to decode them.
_ERRORS: Final = (sqlite3.Error, UnicodeError)


@dataclass(frozen=True, slots=True)
class FileFormat:
    """A kind of SQLite file.

    Attributes:
        application_id: The number in the header of such files that identifies them, above 0 and below 2**31.
        version: The version that this release reads and writes.
        schema: Statements that create the tables.
        settings: Pragmas for each connection.
        error: The exception for a file that cannot be used.
        noun: Names such a file in messages: "cache file".
        kind: Completes "not ..." in messages: "a cache of this project".
        if_damaged: What to do with a damaged file, as an imperative.
        if_other_version: What to do with a file of another version, as an imperative.
    """

    application_id: int
    version: int
    schema: tuple[str, ...]
    settings: tuple[str, ...]
    error: type[Exception]
    noun: str
    kind: str
    if_damaged: str
    if_other_version: str


class Database:
    """A connection to an SQLite file of one format. Several processes may use the file at once.

    A missing or empty file becomes a new one. Files of other programs are left unchanged.

    Args:
        path: The file, on a local disk. Its directory must exist.
        file_format: The expected format.
    """

    def __init__(self, path: Path, file_format: FileFormat) -> None:
        self.path = path
        self._format = file_format
        self._connection: sqlite3.Connection | None = None

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection of an open database."""
        assert self._connection is not None
        return self._connection

    def open(self, prepare: Callable[[], None]) -> None:
        """Connect to the file, unless there is a connection, and create its tables if it is new.

        Args:
            prepare: Is called with the connection open. If it raises, the database is closed.

        Raises:
            FileFormat.error: The file cannot be used.
        """
        if self._connection is not None:
            return
        if not self.path.absolute().parent.is_dir():
            raise self._error("cannot be created: create its directory first")
        if self.path.is_dir():
            raise self._error("is a directory: give the path of a file")
        if self.path.is_file() and self.path.stat().st_size == 1:  # SQLite takes it for an empty file
            raise self.damaged("it has only one byte")
        with self.translated_errors():
            self._connection = self._connect_when_unlocked()
            try:
                prepare()
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """Close the connection, if there is one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def transaction(self) -> AbstractContextManager[sqlite3.Connection]:
        """A block whose writes are committed together, or not at all."""
        return _transaction(self.connection)

    @contextmanager
    def translated_errors(self) -> Iterator[None]:
        """A block in which an SQLite error becomes a `FileFormat.error`."""
        try:
            yield
        except _ERRORS as error:
            raise self._translated(error) from error

    def damaged(self, reason: str) -> Exception:
        """The error to raise for a damaged file."""
        return self._error(f"is damaged, or not {self._format.kind} ({reason}): {self._format.if_damaged}")

    def _connect_when_unlocked(self) -> sqlite3.Connection:
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                return self._connect()
            except _ERRORS as error:
                if _code(error) not in _BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(_RETRY_SECONDS)  # SQLite itself does not wait while two processes change the journal mode

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA cell_size_check = ON")
            connection.execute("PRAGMA trusted_schema = OFF")
            with _transaction(connection):
                if self._is_new(connection):
                    self._create_tables(connection)
            for setting in self._format.settings:  # which change the file, so it must not be another program's
                connection.execute(setting)
        except BaseException:
            connection.close()
            raise
        return connection

    def _is_new(self, connection: sqlite3.Connection) -> bool:
        (application_id,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if (application_id, version, tables) == (0, 0, 0):
            return True
        if application_id != self._format.application_id:
            raise self._error(f"is a database, but not {self._format.kind}: give another path")
        if version != self._format.version:
            raise self._error(
                f"is of version {version}, and this release reads version {self._format.version}: "
                f"{self._format.if_other_version}"
            )
        return False

    def _create_tables(self, connection: sqlite3.Connection) -> None:
        for statement in self._format.schema:
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {self._format.application_id}")
        connection.execute(f"PRAGMA user_version = {self._format.version}")

    def _translated(self, error: Exception) -> Exception:
        code = _code(error)
        if code in _DAMAGED:
            return self.damaged(str(error))
        if code in _BUSY:
            return self._error(f"was locked by another process for {BUSY_SECONDS:g} s")
        return self._error(f"cannot be used: {error}")

    def _error(self, problem: str) -> Exception:
        return self._format.error(f"the {self._format.noun} {self.path} {problem}")


class FileThread:
    """Runs blocking calls in a thread, one at a time.

    Cancellation: a call that has not begun does not happen. One that has begun is finished, and its result counts.
    """

    def __init__(self) -> None:
        # Trio's default limiter may be exhausted by threads that were abandoned
        self._limiter = trio.CapacityLimiter(1)

    async def run(self, call: Callable[..., R], *arguments: Any) -> R:
        """The result of the call."""
        return await trio.to_thread.run_sync(call, *arguments, abandon_on_cancel=False, limiter=self._limiter)


def checksum(*parts: bytes) -> bytes:
    """A digest of the parts and their lengths."""
    digest = blake2b(digest_size=16)
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.digest()


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            with suppress(*_ERRORS):  # the first error is the one to raise
                connection.execute("ROLLBACK")


def _code(error: Exception) -> int:
    """SQLite's primary result code. Errors raised by Python itself have none, and count as damage."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
