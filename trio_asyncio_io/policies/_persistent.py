"""The policy `persistent`: results in an SQLite file, found by a key that is the same in every run.

persistent    the policy
Store         the results in the file
GroupCommit   one thread call at a time, for all requests that have arrived
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from struct import pack
from typing import Any, Final, ParamSpec, TypeAlias, TypeVar

import trio
from trio.lowlevel import disable_ki_protection, enable_ki_protection

from .._files.codec import UnreadableError, decoded, encoded
from .._files.sqlite import Database, FileFormat, FileThread, checksum
from .._values.checks import check_name, check_path
from .._values.describe import describe
from ._cached import Validity, from_cache, is_none
from ._policy import Policy, Wrapped, by_position
from ._single_flight import CallTasks, SharedCall

P = ParamSpec("P")
R = TypeVar("R")


class CacheError(RuntimeError):
    """The file of a persistent cache cannot be used. The message gives the reason and the remedy."""


class persistent(Policy[P, R]):  # noqa: N801 - used like a function
    """A function that caches its results in a file, so that later runs need not call it again.

    A result is in the file before `invoke` returns it. If a job is killed and run again, the second run makes only the
    calls that had not returned. Any number of processes of one host may use the file at once, and each finds the
    results of the others. Exceptions are not cached. Concurrent first calls with one key are all made: put
    `single_flight` inside to share them within one process.

    The file is an SQLite database, used in a thread. Concurrent invocations share its transactions. The file survives
    the end of the process, however it ends; a power cut may lose the results of the last seconds. A damaged file or
    result raises a `CacheError`, and is never taken for a result.

    Results are stored as plain text, so reading the file runs no code. These types are stored and come back as they
    were: None, bool, int, float, str, bytes, tuple, list, dict, set, frozenset, Decimal, UUID, date, time, datetime,
    timedelta and their zones (`ZoneInfo` and `timezone`). Convert other types to these, for example with
    `dataclasses.asdict`.

    Args:
        function: An async callable or an `AsyncFunction`.
        path: The file, on a local disk. It is created if it is missing; its directory must exist. On Spark, each
            worker's host has its own. A `~` at its beginning is the home directory of the process that makes the
            policy. Two files with the suffixes -wal and -shm lie beside it.
        name: Separates functions that share a file, and versions of one function: change it when the old results are no
            longer right.
        ttl: Seconds for which a result is valid, above 0, on the wall clock; `math.inf` forever. Expired results are
            deleted when the file is opened.
        key: The arguments -> a key that identifies the call. None: the arguments themselves. A key is None, a bool,
            int, float, str, bytes, Decimal, date, datetime, timedelta or UUID, or a tuple of these. Keys of different
            types differ, such as 1, 1.0 and True, and so do 0.0 and -0.0. NaN equals NaN.
        negative_ttl: Seconds for which a negative result is valid, at least 0; 0: it is not cached. None: the same as
            `ttl`.
        is_negative: result -> whether it is negative. By default, None is the only negative result.

    Attributes:
        hits: Calls answered from the file.
        misses: Calls made.

    Raises:
        TypeError, ValueError: An argument is out of its range; a key is of another type; or a result cannot be
            stored. That message has the place of the part that cannot, and its type.
        CacheError: The file cannot be used, for example because it is damaged, or belongs to another program. Raised by
            `open`, or by the call that detects it.
        RuntimeError: The policy is not open. An operator opens it; by hand, `await` its `open` and `close`.

    Cancellation: the result of a cancelled call is not cached. A result that the call has returned is stored even if it
    is cancelled then. That takes milliseconds, or at most ten seconds if another process holds the file.

    Example:
        path = "/var/cache/weather.sqlite"
        lookup = persistent(fetch, path, name="weather 2", ttl=86_400.0)
    """

    def __init__(
        self,
        function: Wrapped[P, R],
        path: str | os.PathLike[str],
        *,
        name: str,
        ttl: float = math.inf,
        key: Callable[..., Hashable] | None = None,
        negative_ttl: float | None = None,
        is_negative: Callable[[R], bool] = is_none,
    ) -> None:
        path = check_path("path", path)
        options = {
            "path": path,
            "name": check_name("name", name),
            "ttl": ttl,
            "negative_ttl": negative_ttl,
            "is_negative": is_negative,
        }
        super().__init__(function, key=key, **options)
        self._validity = Validity(ttl, negative_ttl, is_negative)
        self._store = Store(path, name)
        self._group_commit: GroupCommit | None = None
        self.hits = 0
        self.misses = 0

    async def _open(self) -> None:
        await FileThread().run(self._store.open)
        try:
            await super()._open()
        except BaseException:
            await self._close_store()
            raise
        self._group_commit = GroupCommit(self._store.execute)

    async def _close(self) -> None:
        self._group_commit = None
        try:
            # First, because the operator gives `close` a limited time
            await self._close_store()
        finally:
            await super()._close()

    @enable_ki_protection
    async def invoke(self, *arguments: P.args, **keywords: P.kwargs) -> R:
        """The result in the file, or the result of a new call, which is in the file when this returns."""
        values = by_position(self, arguments, keywords) if keywords else arguments
        if self._group_commit is None:
            raise RuntimeError(f"{self} is not open: an operator opens it; by hand, `await` its open() and close()")
        key = self._stable_key(values)
        payload = await self._group_commit.submit(key)
        if payload is not None:
            with suppress(UnreadableError):  # such as a time zone that this host lacks
                found: R = decoded(payload)
                self.hits += 1
                from_cache.set(True)
                return found
        self.misses += 1
        result: R = await self._call(*values)
        if seconds := self._validity.seconds_for(result):
            insert = Insert(key, encoded(result, "result"), seconds)
            with trio.CancelScope(shield=True):  # the call is paid for
                await self._group_commit.submit(insert)
        return result

    @disable_ki_protection
    def _stable_key(self, arguments: tuple[Any, ...]) -> bytes:
        return stable_key(arguments if self._key is None else self._key(*arguments))

    async def _close_store(self) -> None:
        with trio.CancelScope(shield=True):
            await FileThread().run(self._store.close)


def stable_key(value: Any) -> bytes:
    """The value as bytes that are the same in every process. Those of different types, such as 1, 1.0 and True, differ.

    Args:
        value: A hashable that a file can store. Not a mutable container: it could change during the call.

    Raises:
        TypeError: The value is, or contains, anything else.
    """
    try:
        hash(value)
        return encoded(value, "key")
    except TypeError as error:  # includes `NotStorableError`
        raise TypeError(
            f"{describe(value)} of type {type(value).__name__} is not a key that other processes would find again: "
            "give persistent key=, a function that returns None, bool, int, float, str, bytes, Decimal, date, "
            "datetime, timedelta, UUID or tuples of these"
        ) from error


# The file

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
        self._tasks = CallTasks("trio_asyncio_io group commit")
        self._call: SharedCall[Sequence[bytes | None]] | None = None  # waits for the lock. More requests can be added
        self._requests: list[Request] = []  # of this call

    async def submit(self, request: Request) -> bytes | None:
        """The outcome of the request. An exception is raised for each request of its group.

        Cancellation: the caller leaves immediately, even if its request is being executed. Only the last caller of a
        group that is being executed waits for the outcome, which counts.
        """
        if self._call is None or self._call.is_abandoned:
            self._requests = []
            self._call = self._tasks.start(partial(self._flush, self._requests))
        call, number = self._call, len(self._requests)
        self._requests.append(request)
        return (await call.wait())[number]

    async def _flush(self, requests: list[Request]) -> Sequence[bytes | None]:
        async with self._lock:
            if self._requests is requests:
                self._call = None
            return await self._thread.run(self._execute, requests)
