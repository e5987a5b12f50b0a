"""The file of the policy `persistent`, and the task that writes many results in one transaction."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from struct import pack
from typing import Final, TypeAlias

import trio

from ..._files.sqlite import Database, FileFormat, FileThread, checksum
from .._single_flight import SharedCall

__all__ = ["FORMAT", "CacheError", "GroupCommit", "Insert", "Store"]


class CacheError(RuntimeError):
    """The file of a persistent cache cannot be used. The message gives the reason and the remedy."""


FORMAT: Final = FileFormat(
    application_id=0x7461696F,  # "taio"
    version=1,
    schema=(
        "CREATE TABLE answers (id BLOB PRIMARY KEY, value BLOB NOT NULL, expires REAL, checksum BLOB NOT NULL)",
        "CREATE INDEX answers_by_expiry ON answers (expires) WHERE expires IS NOT NULL",
    ),
    settings=("PRAGMA journal_mode = WAL", "PRAGMA synchronous = NORMAL"),
    error=CacheError,
    noun="cache file",
    kind="a cache of this project",
    if_damaged="delete it, and the files beside it that end in -wal and -shm. Its results will be fetched again",
    if_other_version="give another path, or upgrade",
)


@dataclass(frozen=True, slots=True)
class Insert:
    """Requests that a value be stored for a number of seconds, or forever with `math.inf`."""

    key: bytes
    value: bytes
    seconds: float


Request: TypeAlias = bytes | Insert  # the key of a value to look up, or a value to store


class Store:
    """Values by key, each with an expiry, in a file that several processes may use at once.

    Each row has a checksum of its name, key, value and expiry. A damaged row is a `CacheError`, like damage to the file
    as a whole.

    A stored value survives the end of the process, however it ends. A power cut may lose the transactions of the last
    seconds, but never part of one (SQLite's write-ahead log with `synchronous=NORMAL`).

    Args:
        path: The file, on a local disk. Its directory must exist.
        name: Separates the keys of functions that share a file.
    """

    def __init__(self, path: str, name: str) -> None:
        self._database = Database(Path(path), FORMAT)
        self._name = name.encode()

    def open(self) -> None:
        """Open the file, create it if it is missing, and delete expired values.

        Raises:
            CacheError: The file cannot be used.
        """
        self._database.open(self._delete_expired)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def execute(self, requests: Sequence[Request]) -> list[bytes | None]:
        """Execute the inserts in one transaction, and then the lookups.

        Returns:
            An outcome per request. For a lookup: the value, or None if it is missing. For an insert: None, once it is
            in the file.

        Raises:
            CacheError: The file cannot be used, or a value that is looked up is damaged.
        """
        with self._database.translated_errors():
            self._insert([request for request in requests if isinstance(request, Insert)])
            return [None if isinstance(request, Insert) else self._find(request) for request in requests]

    def _delete_expired(self) -> None:
        self._database.connection.execute("DELETE FROM answers WHERE expires <= ?", (time.time(),))

    def _find(self, key: bytes) -> bytes | None:
        query = "SELECT value, expires, checksum FROM answers WHERE id = ?"
        rows = self._database.connection.execute(query, (self._id(key),)).fetchall()
        if not rows:
            return None
        value, expires, found = rows[0]
        is_typed = isinstance(value, bytes) and (expires is None or isinstance(expires, float))
        if not is_typed or found != self._checksum(key, value, expires):
            raise self._database.damaged("the checksum of a result is wrong")
        return value if expires is None or time.time() < expires else None

    def _insert(self, inserts: list[Insert]) -> None:
        if not inserts:
            return
        now = time.time()
        rows = [self._row(insert, now + insert.seconds) for insert in inserts]
        with self._database.transaction() as connection:
            connection.executemany("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?)", rows)

    def _row(self, insert: Insert, instant: float) -> tuple[bytes, bytes, float | None, bytes]:
        expires = None if instant == math.inf else instant
        return self._id(insert.key), insert.value, expires, self._checksum(insert.key, insert.value, expires)

    def _id(self, key: bytes) -> bytes:
        return checksum(self._name, key)

    def _checksum(self, key: bytes, value: bytes, expires: float | None) -> bytes:
        return checksum(self._name, key, value, b"" if expires is None else pack(">d", expires))


class GroupCommit:
    """Executes the requests of many tasks in a thread, with as few thread calls as possible.

    Args:
        execute: A blocking callable, requests -> one outcome each. Called in a thread, one call at a time.
    """

    def __init__(self, execute: Callable[[list[Request]], Sequence[bytes | None]]) -> None:
        self._execute = execute
        self._thread = FileThread()
        self._lock = trio.Lock()
        # The call that executes these requests, and to which more can be added
        self._open_group: tuple[SharedCall[Sequence[bytes | None]], list[Request]] | None = None

    async def submit(self, request: Request) -> bytes | None:
        """The outcome of the request. An exception is raised for each request of its group.

        Cancellation: the caller leaves immediately if the request's group is still waiting. If its group is being
        executed, the caller waits for the outcome, which counts.
        """
        if self._open_group is None or self._open_group[0].is_abandoned:
            self._open_group = self._new_group()
        call, requests = self._open_group
        number = len(requests)
        requests.append(request)
        return (await call.wait())[number]

    def _new_group(self) -> tuple[SharedCall[Sequence[bytes | None]], list[Request]]:
        requests: list[Request] = []
        call = SharedCall(lambda: self._flush(requests))
        call.start("trio_asyncio_io group commit")
        return call, requests

    async def _flush(self, requests: list[Request]) -> Sequence[bytes | None]:
        try:
            await self._lock.acquire()
        finally:
            if self._open_group is not None and self._open_group[1] is requests:
                self._open_group = None
        try:
            return await self._thread.run(self._execute, requests)
        finally:
            self._lock.release()
