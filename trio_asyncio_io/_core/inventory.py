"""The inventory: every element that was taken from the source and is not received yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from .dead_letter import DeadLetter
from .elements import is_inserted
from .queue import Entry, StreamElementQueue
from .snapshot import Snapshot, SnapshotElement

__all__ = ["Inventory", "by_sequence"]

by_sequence = attrgetter("sequence")


class Inventory:
    """The elements that one operator holds, wherever they are.

    Args:
        queue: The accepted elements that have not been emitted.
        restored: The snapshot to start with.

    Attributes:
        queue: As given.
        backlog: (element, results or None) of elements that were taken from the source but are not in the queue yet.
        leaving: By sequence, the entries with outputs that have left the queue and are not received yet.
        unread: By sequence, the entries of dead letters that have left the queue and are not received yet.
        dead_letters: By sequence, the dead letters of the elements in the queue or unread.
        inserted: The number of watermarks in the queue's input that are not elements of the source.
    """

    def __init__(self, queue: StreamElementQueue, restored: Snapshot) -> None:
        self.queue = queue
        self.backlog: deque[tuple[Any, Sequence[Any] | None]] = deque(
            (element.element, element.results) for element in restored.elements
        )
        self.leaving: dict[int, Entry] = {}
        self.unread: dict[int, Entry] = {}
        self.dead_letters: dict[int, DeadLetter] = {}
        self.inserted = -self._inserted_in_backlog()  # `restored.taken` does not include them
        self._taken_before = restored.taken - len(self.backlog)

    def snapshot(self) -> Snapshot:
        """Every element held, in arrival order."""
        entries = sorted([*self.leaving.values(), *self.unread.values(), *self.queue.entries()], key=by_sequence)
        accepted = [SnapshotElement(entry.sequence, entry.element, self._unreceived(entry)) for entry in entries]
        held = [
            SnapshotElement(sequence, element, None if results is None else list(results))
            for sequence, (element, results) in enumerate(self.backlog, start=self.queue.arrived)
        ]
        return Snapshot((*accepted, *held), taken=self._taken())

    def outputs_of(self, entry: Entry, results: Sequence[Any]) -> Sequence[Any]:
        """The outputs of a restored record. Its dead letter is stored separately."""
        if len(results) == 1 and isinstance(results[0], DeadLetter):
            self.dead_letters[entry.sequence] = results[0]
            return ()
        return tuple(results)

    def _unreceived(self, entry: Entry) -> list[Any] | None:
        if entry.is_watermark or entry.results is None:
            return None
        if entry.sequence in self.dead_letters:
            return [self.dead_letters[entry.sequence]]
        return list(entry.results[entry.received :])

    def _taken(self) -> int:
        """The number of elements taken from the source, in this run and in the runs that it was restored from."""
        arrived = self._taken_before + self.queue.arrived + len(self.backlog)
        return arrived - self.inserted - self._inserted_in_backlog()

    def _inserted_in_backlog(self) -> int:
        return sum(is_inserted(element) for element, _ in self.backlog)
