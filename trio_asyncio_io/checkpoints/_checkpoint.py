"""The durable checkpoint: where a consumer stands, and what keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from .._core.describe import describe
from .._core.snapshot import Snapshot

__all__ = ["Checkpoint", "CheckpointError", "CheckpointStore"]


class CheckpointError(RuntimeError):
    """A durable checkpoint cannot be kept, or cannot be read back. Says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where a consumer stands: everything that a run which goes on from here has to know.

    The outputs up to `position` and those of a run that restores `snapshot` are together those of an undisturbed
    run, if both were taken between the same two receives: in one synchronous step.

    Attributes:
        snapshot: What `results.snapshot()` returned.
        position: Where the consumer's own output ends, as the consumer finds it again: bytes written, a
            count of outputs, an identifier of its last transaction. Anything that pickles.

    Raises:
        TypeError: `snapshot` is none.
    """

    snapshot: Snapshot
    position: Any

    def __post_init__(self) -> None:
        if not isinstance(self.snapshot, Snapshot):
            raise TypeError(
                f"a durable checkpoint takes a Snapshot, got {describe(self.snapshot)}: give it what "
                "`results.snapshot()` returns"
            )


class CheckpointStore(Protocol):
    """What keeps the last durable checkpoint of each name. `SQLiteStore` is one; write your own for a database.

    A commit replaces the one before it as a whole: whoever loads gets the old one or the new one, whatever was
    killed in between. A commit that has returned is the one that is loaded.
    """

    async def load(self, name: str) -> Checkpoint | None:
        """The one committed last under this name, or None if there is none.

        Raises:
            CheckpointError: There is one, and it cannot be read back.
        """

    async def commit(self, name: str, checkpoint: Checkpoint) -> None:
        """Keep this one in place of the one before it.

        Raises:
            CheckpointError: It could not be kept.
        """
