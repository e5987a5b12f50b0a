"""The durable checkpoint, and the protocol of its stores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from .._core.describe import describe
from .._core.snapshot import Snapshot

__all__ = ["Checkpoint", "CheckpointError", "CheckpointStore"]


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
