"""The store: answers in an SQLite file that several processes use at once.

Synchronous, and free of Trio. All its calls block, so they belong into a thread, one at a time.
"""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from struct import pack
from typing import Final, Literal

__all__ = ["CacheError", "Find", "Keep", "Store"]

VERSION: Final = 1
APPLICATION: Final = 0x7461696F  # "taio", in the header of each of our files

# How long a process waits for another one's transaction, which takes milliseconds.
BUSY_SECONDS: Final = 10.0

_SCHEMA: Final = (
    "CREATE TABLE answers (id BLOB PRIMARY KEY, value BLOB NOT NULL, expires REAL, checksum BLOB NOT NULL)",
    "CREATE INDEX answers_by_expiry ON answers (expires) WHERE expires IS NOT NULL",
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {VERSION}",
)

_DAMAGED: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH)
_BUSY: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)

# A damaged file's own words appear in SQLite's messages, and Python may fail to decode them.
_ERRORS: Final = (sqlite3.Error, UnicodeError)


class CacheError(RuntimeError):
    """A cache's file cannot be used: it is damaged, of something else, or out of reach. Says which, and what to do."""


@dataclass(frozen=True, slots=True)
class Find:
    """A question: what is kept for this key?"""

    key: bytes


@dataclass(frozen=True, slots=True)
class Keep:
    """An order: keep this value for this key, for so many seconds; `math.inf`: for ever."""

    key: bytes
    value: bytes
    seconds: float


class Store:
    """Values by key, each with an expiry, in a file.

    A row has a checksum of its name, key, value and expiry, so damaged bytes are never taken for an answer: such
    a row is missing. Damage to the file as a whole is a `CacheError`.

    What `answer` has kept survives the end of the process, however it ends. A power cut may take the last
    seconds' transactions with it; what is left is whole (SQLite's write-ahead log, `synchronous=NORMAL`).

    Args:
        path: The file; made unless it is there. Its directory must be there, and on a local disk.
        name: Whose keys these are, where several functions share a file.
        clock: Gives the seconds since the epoch.
    """

    def __init__(self, path: str, name: str, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._name = name.encode()
        self._clock = clock
        self._connection: sqlite3.Connection | None = None

    @property
    def is_open(self) -> bool:
        """Whether it can answer."""
        return self._connection is not None

    def open(self) -> None:
        """Open the file, make it if need be, and drop what has expired.

        Raises:
            CacheError: It cannot be used.
        """
        self.close()  # it may be open still, from a Trio run that ended without closing it
        if not Path(self._path).absolute().parent.is_dir():
            raise CacheError(f"the cache file {self._path} cannot be made: make its directory first")
        if Path(self._path).is_file() and Path(self._path).stat().st_size == 1:  # SQLite would take it for an empty one
            raise self._damaged("it has only one byte")
        patience = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                self._connection = self._opened()
            except _ERRORS as error:
                if _primary(error) not in _BUSY or time.monotonic() > patience:
                    raise self._told(error) from error
                time.sleep(0.01)  # SQLite does not wait where two processes change to the log at once
            else:
                return

    def close(self) -> None:
        """Close the file."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def answer(self, requests: Sequence[Find | Keep]) -> list[bytes | CacheError | None]:
        """The value for each `Find`, None where there is none; None for each `Keep`, once it is on disk.

        One transaction for all that is kept. What cannot be done is a `CacheError` in its place.
        """
        assert self._connection is not None
        answers: list[bytes | CacheError | None] = [None] * len(requests)
        kept = [each for each in requests if isinstance(each, Keep)]
        finds = [(number, each.key) for number, each in enumerate(requests) if isinstance(each, Find)]
        try:
            self._keep(self._connection, kept)
        except _ERRORS as error:
            told = self._told(error)
            answers = [told if isinstance(each, Keep) else None for each in requests]
        try:
            for number, key in finds:
                answers[number] = self._find(self._connection, key)
        except _ERRORS as error:
            told = self._told(error)
            for number, _ in finds:
                answers[number] = told
        return answers

    def _opened(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            with _Transaction(connection, "DEFERRED"):  # before anything is changed in what may be another's file
                self._check_kind(connection)
            connection.execute("PRAGMA cell_size_check = ON")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            with _Transaction(connection):
                if self._check_kind(connection) == 0:
                    for statement in _SCHEMA:
                        connection.execute(statement)
            self._purge(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_kind(self, connection: sqlite3.Connection) -> int:
        """The version of the file; 0 if it is empty."""
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if application == APPLICATION and version == VERSION:
            return VERSION
        if (application, version, tables) == (0, 0, 0):
            return 0
        if application == APPLICATION and version > VERSION:
            raise CacheError(
                f"the cache file {self._path} is of version {version}, and this release reads version {VERSION}: "
                "give another path, or upgrade"
            )
        raise CacheError(f"the file {self._path} is a database, but no cache of this project: give another path")

    def _purge(self, connection: sqlite3.Connection) -> None:
        now = self._clock()
        if connection.execute("SELECT 1 FROM answers WHERE expires <= ? LIMIT 1", (now,)).fetchone():
            connection.execute("DELETE FROM answers WHERE expires <= ?", (now,))

    def _find(self, connection: sqlite3.Connection, key: bytes) -> bytes | None:
        rows = connection.execute("SELECT value, expires, checksum FROM answers WHERE id = ?", (self._id(key),))
        with closing(rows):
            row = rows.fetchone()
        if row is None:
            return None
        value, expires, checksum = row
        is_whole = isinstance(value, bytes) and (expires is None or isinstance(expires, float))
        if not is_whole or checksum != self._checksum(key, value, expires):
            return None
        return value if expires is None or self._clock() < expires else None

    def _keep(self, connection: sqlite3.Connection, orders: list[Keep]) -> None:
        if not orders:
            return
        now = self._clock()
        rows = []
        for each in orders:
            expires = None if each.seconds == math.inf else now + each.seconds
            rows.append((self._id(each.key), each.value, expires, self._checksum(each.key, each.value, expires)))
        with _Transaction(connection):
            connection.executemany("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?)", rows)

    def _id(self, key: bytes) -> bytes:
        return _digest(self._name, key)

    def _checksum(self, key: bytes, value: bytes, expires: float | None) -> bytes:
        return _digest(self._name, key, value, b"" if expires is None else pack(">d", expires))

    def _told(self, error: Exception) -> CacheError:
        code = _primary(error)
        if code in _DAMAGED:
            return self._damaged(str(error))
        if code in _BUSY:
            return CacheError(f"the cache file {self._path} was locked by another process for {BUSY_SECONDS:g} s")
        return CacheError(f"the cache file {self._path} cannot be used: {error}")

    def _damaged(self, why: str) -> CacheError:
        return CacheError(
            f"the cache file {self._path} is damaged, or no cache at all ({why}): delete it, and those beside "
            "it that end in -wal and -shm; what it held will be asked for again"
        )


class _Transaction:
    """A block that sees one state of the file, and is written as a whole, or not at all."""

    def __init__(self, connection: sqlite3.Connection, kind: Literal["IMMEDIATE", "DEFERRED"] = "IMMEDIATE") -> None:
        self._connection = connection
        self._kind = kind

    def __enter__(self) -> None:
        self._connection.execute(f"BEGIN {self._kind}")

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            if kind is None:
                self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:
                with suppress(*_ERRORS):  # the first error is the one to tell
                    self._connection.execute("ROLLBACK")


def _primary(error: Exception) -> int:
    """SQLite's result code, without the details in its upper bits. An error of Python's own has none."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


def _digest(*parts: bytes) -> bytes:
    digest = blake2b(digest_size=16)
    for part in parts:
        digest.update(pack(">Q", len(part)))
        digest.update(part)
    return digest.digest()
