"""A checkpoint store in an SQLite file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import trio

from .._codec import Codec, NotStorableError, UnreadableError, check_codec, decoded, encoded
from .._core.checks import check_name, check_path
from .._core.describe import describe
from .._sqlite import FileThread
from ._checkpoint import Checkpoint, CheckpointError
from ._table import CheckpointTable

__all__ = ["SQLiteStore"]

R = TypeVar("R")


class SQLiteStore(trio.abc.AsyncResource):
    """Durable checkpoints in a file: a `CheckpointStore` that needs no server.

    A commit is one transaction. A process that is killed at any moment leaves either the old durable checkpoint or the
    new one. A commit that has returned is on disk, and survives a power cut. It overwrites the old one, so the file
    does not grow with the number of commits.

    The file is an SQLite database. It is opened at the first use, and read and written in a thread. Several names, and
    several processes of one host, may use it at once; each name belongs to one consumer at a time. Damaged bytes raise
    a `CheckpointError` and are never loaded as a wrong state.

    Elements, results and positions are stored as plain text, so loading runs no code. These types are stored and come
    back as they were: None, bool, int, float, str, bytes, tuple, list, dict, set, frozenset, Decimal, UUID, date, time,
    datetime, timedelta and their zones (`ZoneInfo` and `timezone`), `StreamRecord` and `Watermark`. A `DeadLetter`
    comes back with a `LostError`. For other types, pass `codec="pickle"`.

    Leave the block, or `await aclose()`. Both wait for a commit that has begun.

    Args:
        path: The file, on a local disk. It is created if it is missing; its directory must exist. During a commit, and
            after a kill until the next use, a file with the suffix -journal lies beside it and belongs to it.
        codec: "plain", or "pickle" for values of any type that can be pickled. Then **trust the file as you trust your
            code**: whoever can write to it can run any code in your process. A file belongs to the codec that created
            it.

    Raises:
        TypeError, ValueError: `path` is not the path of a file, or `codec` is not a codec.

    Example:
        async with SQLiteStore("job.sqlite") as store:
            start = await store.load("flights") or Checkpoint(Snapshot(), position=0)
            ...
            checkpoint = Checkpoint(results.snapshot(), position=output.tell())
            await store.commit("flights", checkpoint)
    """

    def __init__(self, path: str | os.PathLike[str], *, codec: Codec = "plain") -> None:
        self._path = Path(check_path("path", path)).absolute()
        self._codec: Codec = check_codec(codec)
        self._table = CheckpointTable(self._path, self._codec)
        self._thread = FileThread()
        self._is_closed = False

    async def load(self, name: str) -> Checkpoint | None:
        """Return the last durable checkpoint that was committed under this name, or None.

        Raises:
            CheckpointError: The file cannot be used: it is damaged, not a file of durable checkpoints, of a newer
                release, of another codec, or locked by another process for ten seconds. Or its content cannot be read
                in this process, because a class or a time zone is missing.
            trio.ClosedResourceError: You closed the store.

        Cancellation: nothing was loaded, and nothing has changed.
        """
        found = await self._run(self._table.load, check_name("name", name))
        if found is None:
            return None
        try:
            return Checkpoint(*(decoded(payload, self._codec) for payload in found))
        except (UnreadableError, TypeError) as error:
            raise CheckpointError(
                f"{name!r} in the file {self._path} cannot be read: {error}. It remains in the file: install or import "
                "what is missing, as in the process that committed it, and load it again"
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
            snapshot = encoded(checkpoint.snapshot, self._codec, "snapshot")
            position = encoded(checkpoint.position, self._codec, "position")
        except NotStorableError as error:
            raise CheckpointError(f"{error}. Nothing was committed") from error.__cause__
        await self._run(self._table.commit, name, snapshot, position)

    async def aclose(self) -> None:
        """Close the file, after the calls that were made before. Does so even when cancelled."""
        self._is_closed = True
        with trio.CancelScope(shield=True):
            await self._thread.run(self._table.close)

    async def _run(self, call: Callable[..., R], *arguments: Any) -> R:
        if self._is_closed:
            raise trio.ClosedResourceError(f"{self!r} was closed")
        return await self._thread.run(call, *arguments)

    def __repr__(self) -> str:
        return f"SQLiteStore({str(self._path)!r})"
