"""Durable checkpoints: a snapshot and the consumer's position, stored in one transaction.

Checkpoint         a snapshot and a position
CheckpointStore    the protocol of a store: one durable checkpoint per name
SQLiteStore        a store in a file
CheckpointError    a durable checkpoint cannot be stored, or cannot be loaded
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import trio

from ._core.snapshot import Snapshot
from ._files.codec import NotStorableError, UnreadableError, decoded, encoded
from ._files.sqlite import Database, FileFormat, FileThread, checksum
from ._values.checks import check_name, check_path
from ._values.describe import describe

__all__ = ["Checkpoint", "CheckpointError", "CheckpointStore", "SQLiteStore"]

R = TypeVar("R")


class CheckpointError(RuntimeError):
    """A durable checkpoint cannot be stored, or cannot be loaded. The message gives the reason and the remedy."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state of a consumer: all that a later run needs to continue.

    Take the snapshot and the position in one synchronous step, between the same two receives. Then the outputs up to
    `position`, followed by those of a run that restores `snapshot`, are the outputs of an undisturbed run.

    Attributes:
        snapshot: The result of `results.snapshot()`.
        position: The end of the consumer's own output, in a form from which the consumer can find it again: a number of
            bytes, a number of outputs, the identifier of its last transaction. Any value that the store can hold.

    Raises:
        TypeError: `snapshot` is not a snapshot.
    """

    snapshot: Snapshot
    position: Any

    def __post_init__(self) -> None:
        if not isinstance(self.snapshot, Snapshot):
            raise TypeError(
                f"a durable checkpoint takes a Snapshot, got {describe(self.snapshot)}: give it the result of "
                "`results.snapshot()`"
            )


class CheckpointStore(Protocol):
    """Stores the last durable checkpoint of each name. `SQLiteStore` is one; write your own for another database.

    A commit replaces the previous durable checkpoint as a whole: `load` returns the old one or the new one, whatever
    was killed in between. Once `commit` has returned, `load` returns the new one.
    """

    async def load(self, name: str) -> Checkpoint | None:
        """Return the last durable checkpoint that was committed under this name, or None.

        Raises:
            CheckpointError: It cannot be loaded.
        """

    async def commit(self, name: str, checkpoint: Checkpoint) -> None:
        """Replace the durable checkpoint of this name.

        Raises:
            CheckpointError: It cannot be stored.
        """


_FORMAT: Final = FileFormat(
    application_id=0x74616963,  # "taic"
    version=1,
    schema=(
        "CREATE TABLE checkpoints (name TEXT PRIMARY KEY, snapshot BLOB, position BLOB, checksum BLOB) WITHOUT ROWID",
    ),
    settings=(
        # Not WAL: a second file would grow with each commit. With EXTRA, a power cut cannot bring back the journal of a
        # commit that has returned, and so undo it. On macOS, only fullfsync writes through the disk's own cache
        "PRAGMA journal_mode = DELETE",
        "PRAGMA synchronous = EXTRA",
        "PRAGMA fullfsync = ON",
    ),
    error=CheckpointError,
    noun="file",
    kind="a file of durable checkpoints",
    if_damaged="restore it from a copy, together with the output that belongs to it, or delete both and begin anew",
    if_other_version="finish the job with the release that began it, or upgrade",
)


class SQLiteStore(trio.abc.AsyncResource):
    """Durable checkpoints in a file: a `CheckpointStore` that needs no server.

    A commit is one transaction. A process that is killed at any moment leaves either the old durable checkpoint or the
    new one. A commit that has returned is on disk, and survives a power cut. It overwrites the old one, so the file
    does not grow with the number of commits.

    The file is an SQLite database. It is opened at the first use, and read and written in a thread. Several names, and
    several processes of one host, may use it at once; each name belongs to one consumer at a time. Damaged bytes raise
    a `CheckpointError` and are never loaded as a wrong state.

    Elements, results and positions are stored as plain text, so loading runs no code. The types that
    `policies.persistent` stores come back as they were, and so do `StreamRecord` and `Watermark`. A `DeadLetter` comes
    back with a `LostError`. Convert other types to these, for example with `dataclasses.asdict`.

    Leave the block, or `await aclose()`. Both wait for a commit that has begun.

    Args:
        path: The file, on a local disk. It is created if it is missing; its directory must exist. A `~` at its
            beginning is the home directory. During a commit, and after a kill until the next use, a file with the
            suffix -journal lies beside it and belongs to it.

    Raises:
        TypeError, ValueError: `path` is not the path of a file.

    Example:
        async with SQLiteStore("job.sqlite") as store:
            start = await store.load("flights") or Checkpoint(Snapshot(), position=0)
            ...
            checkpoint = Checkpoint(results.snapshot(), position=output.tell())
            await store.commit("flights", checkpoint)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._database = Database(Path(check_path("path", path)).absolute(), _FORMAT)
        self._thread = FileThread()
        self._is_closed = False

    async def load(self, name: str) -> Checkpoint | None:
        """Return the last durable checkpoint that was committed under this name, or None.

        Raises:
            CheckpointError: The file cannot be used: it is damaged, not a file of durable checkpoints, of a newer
                release, or locked by another process for ten seconds. Or its content cannot be read on this host,
                because a time zone is missing.
            trio.ClosedResourceError: You closed the store.

        Cancellation: nothing was loaded, and nothing has changed.
        """
        found = await self._run(self._load, check_name("name", name))
        if found is None:
            return None
        try:
            return Checkpoint(*(decoded(payload) for payload in found))
        except (UnreadableError, TypeError) as error:
            raise CheckpointError(
                f"{name!r} in the file {self._database.path} cannot be read: {error}. It remains in the file: install "
                "what is missing, such as a time zone, and load it again"
            ) from error

    async def commit(self, name: str, checkpoint: Checkpoint) -> None:
        """Replace the durable checkpoint of this name. It is on disk when this returns.

        The durable checkpoint is encoded before the first checkpoint of Trio, so later changes to its elements do not
        matter. That blocks the event loop for a few milliseconds per thousand elements.

        Raises:
            TypeError: `checkpoint` is not a `Checkpoint`.
            CheckpointError: Part of it cannot be stored, and nothing was committed. The message has the place of that
                part and its type. Or the file cannot be used, as in `load`, or cannot be written: then either the old
                durable checkpoint remains, or the new one.
            trio.ClosedResourceError: You closed the store.

        Cancellation: `Cancelled` means that nothing was committed. A commit that has begun is not interrupted: it
        finishes and returns, within milliseconds unless another process holds the file.
        """
        check_name("name", name)
        if not isinstance(checkpoint, Checkpoint):
            raise TypeError(f"commit takes a Checkpoint, got {describe(checkpoint)}")
        try:
            snapshot = encoded(checkpoint.snapshot, "snapshot")
            position = encoded(checkpoint.position, "position")
        except NotStorableError as error:
            raise CheckpointError(f"{error}. Nothing was committed") from error.__cause__
        await self._run(self._commit, name, snapshot, position)

    async def aclose(self) -> None:
        """Close the file, after the calls that were made before. Does so even when cancelled."""
        self._is_closed = True
        with trio.CancelScope(shield=True):
            await self._thread.run(self._database.close)

    async def _run(self, call: Callable[..., R], *arguments: Any) -> R:
        if self._is_closed:
            raise trio.ClosedResourceError(f"{self!r} was closed")
        return await self._thread.run(call, *arguments)

    def __repr__(self) -> str:
        return f"SQLiteStore({str(self._database.path)!r})"

    # In the thread. SQLite checks the structure of the file when it is opened, and each row has a checksum of its name
    # and content. So damaged bytes are an error, never another snapshot and never a missing one

    def _load(self, name: str) -> tuple[bytes, bytes] | None:
        self._database.open(self._check_integrity)
        with self._database.translated_errors():
            return self._checked_rows().get(name)

    def _commit(self, name: str, snapshot: bytes, position: bytes) -> None:
        self._database.open(self._check_integrity)
        with self._database.translated_errors(), self._database.transaction() as connection:
            row = (name, snapshot, position, checksum(name.encode(), snapshot, position))
            connection.execute("INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?, ?)", row)

    def _check_integrity(self) -> None:
        (verdict,) = self._database.connection.execute("PRAGMA integrity_check(1)").fetchone()
        if verdict != "ok":
            raise self._database.damaged(" ".join(verdict.split()))

    def _checked_rows(self) -> dict[str, tuple[bytes, bytes]]:
        """Snapshot and position of each name. All rows are intact."""
        rows = {}
        query = "SELECT name, snapshot, position, checksum FROM checkpoints"
        for name, snapshot, position, found in self._database.connection.execute(query):
            is_intact = (
                isinstance(name, str)
                and isinstance(snapshot, bytes)
                and isinstance(position, bytes)
                and found == checksum(name.encode(), snapshot, position)
            )
            if not is_intact:
                raise self._database.damaged(f"the checksum of {name!r} is wrong")
            rows[name] = snapshot, position
        return rows
