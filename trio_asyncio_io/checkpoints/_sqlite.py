"""The SQLite store: durable checkpoints in a file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import trio

from .._core.checks import check_name, check_path
from ._checkpoint import Checkpoint, CheckpointError
from ._file import File
from ._payload import decoded, encoded

__all__ = ["SQLiteStore"]

R = TypeVar("R")


class SQLiteStore(trio.abc.AsyncResource):
    """Durable checkpoints in a file: a `CheckpointStore` that needs no server.

    A commit is one transaction: a process that is killed at any moment leaves the old durable checkpoint or the
    new one. One that has returned is on disk, where a power cut leaves it. A row is overwritten, so the
    file does not grow with the number of commits.

    The file is an SQLite database, used in a thread, and opened when it is used first. Several names, and
    several processes of one host, may use it at once; each name belongs to one consumer at a time. Damaged
    bytes are a `CheckpointError`, never a wrong state. Everything is pickled, so **trust the file as you trust
    your code**: whoever can write it can run what they like in your process.

    Leave the block, or `await aclose()`: it waits for a commit that was begun.

    Args:
        path: The file, on a local disk; it is made unless it is there, its directory is not. While a commit
            is under way, and after a kill until the next use, one that ends in -journal lies beside it and
            belongs to it.

    Raises:
        TypeError, ValueError: `path` is none.

    Example:
        async with SQLiteStore("job.sqlite") as store:
            start = await store.load("flights") or Checkpoint(Snapshot(), position=0)
            ...
            await store.commit("flights", Checkpoint(results.snapshot(), position=output.tell()))
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = File(Path(check_path("path", path)).absolute())
        self._limiter = trio.CapacityLimiter(1)  # of our own: Trio's default one is for others
        self._is_closed = False

    async def load(self, name: str) -> Checkpoint | None:
        """The one committed last under this name, or None if there is none.

        Raises:
            CheckpointError: The file cannot be used: it is damaged, of something else, of a newer release, or locked
                by another process for ten seconds; or what was committed does not unpickle here.
            trio.ClosedResourceError: You closed the store.

        Cancellation: nothing was loaded, and nothing has changed.
        """
        payload = await self._in_thread(self._file.load, check_name("name", name))
        if payload is None:
            return None
        try:
            return decoded(payload)
        except CheckpointError as error:
            raise CheckpointError(f"{name!r} in the file {self._file.path}: {error}") from error.__cause__

    async def commit(self, name: str, checkpoint: Checkpoint) -> None:
        """Keep this one in place of the one before it. When this returns, it is on disk.

        What is committed is what stands in it at the call: it is pickled there and then, which takes about a
        millisecond of the program's time for a thousand elements.

        Raises:
            CheckpointError: Something in it does not pickle, and nothing was committed; or the file cannot be used,
                as in `load`, or written. Then the old one stands, or the new one.
            trio.ClosedResourceError: You closed the store.

        Cancellation: `Cancelled` means that nothing was committed. A commit that has begun is finished,
        whatever is cancelled meanwhile, and returns: in milliseconds, unless another process holds the file.
        """
        await self._in_thread(self._file.commit, check_name("name", name), encoded(checkpoint))

    async def aclose(self) -> None:
        """Close the file, after the calls that were made before. Does so even when cancelled."""
        self._is_closed = True
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(self._file.close, limiter=self._limiter)

    async def _in_thread(self, work: Callable[..., R], *arguments: Any) -> R:
        if self._is_closed:
            raise trio.ClosedResourceError(f"{self!r} was closed")
        return await trio.to_thread.run_sync(work, *arguments, abandon_on_cancel=False, limiter=self._limiter)

    def __repr__(self) -> str:
        return f"SQLiteStore({str(self._file.path)!r})"
