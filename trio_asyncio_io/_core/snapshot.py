"""The snapshot: every element accepted and not yet received, as plain data that can be pickled."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import Any

from .dead_letter import DeadLetter
from .describe import describe
from .elements import Watermark, is_inserted
from .queue import Entry, StreamElementQueue

__all__ = ["VERSION", "Inventory", "Snapshot", "SnapshotElement", "SnapshotError", "by_sequence", "problem_of"]

VERSION = 1


class SnapshotError(ValueError):
    """A snapshot cannot be restored: it is not a `Snapshot`, has another version, or is damaged."""


@dataclass(frozen=True, slots=True)
class SnapshotElement:
    """One element of a snapshot.

    Attributes:
        sequence: Its position in the operator's input, counted from 0. Restored elements come first.
        element: The `StreamRecord`, `Watermark` or bare value that was accepted.
        results: The outputs of a completed element that were not received. None if the element is not completed, and
            for a watermark.
    """

    sequence: int
    element: Any
    results: list[Any] | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Every element accepted and not yet received by the consumer, in arrival order.

    If a consumer has received k outputs when it takes the snapshot, then these k outputs and the outputs of a run that
    restores the snapshot are exactly the outputs of an undisturbed run: none is lost, none comes twice.

    Attributes:
        elements: The elements, by ascending sequence.
        version: The version of this format. A snapshot with another version is refused.
        taken: The number of elements that were taken from the source, in this run and in the runs that it was restored
            from. To continue with a source that can be read again, skip this number of elements. Watermarks that
            `assign_watermarks` inserted do not count; watermarks of the source do.
    """

    elements: tuple[SnapshotElement, ...] = ()
    version: int = VERSION
    taken: int = 0

    def __len__(self) -> int:
        """The number of elements, watermarks included."""
        return len(self.elements)


def problem_of(snapshot: object) -> str | None:
    """Why a value cannot be restored as a snapshot, or None if it can."""
    if not isinstance(snapshot, Snapshot):
        return f"restore must be a Snapshot, got {describe(snapshot)}"
    if snapshot.version != VERSION:
        return (
            f"the snapshot has version {describe(snapshot.version)}, and this release reads version {VERSION}: "
            "restore it with the release that took it"
        )
    if not isinstance(snapshot.elements, Sequence):
        return f"the snapshot's elements are damaged: {describe(snapshot.elements)} is not a sequence"
    taken: object = snapshot.taken
    if not isinstance(taken, int) or taken < 0:
        return f"the snapshot's count of elements taken is damaged: {describe(taken)}"
    return _problem_of_elements(snapshot.elements)


def _problem_of_elements(elements: Sequence[Any]) -> str | None:
    for position, element in enumerate(elements):
        if not isinstance(element, SnapshotElement):
            return f"the snapshot's element {position} is damaged: {describe(element)} is not a SnapshotElement"
        if not isinstance(element.sequence, int):
            sequence = describe(element.sequence)
            return f"the snapshot's element {position} must have a whole number as its sequence, got {sequence}"
        if not isinstance(element.results, list | tuple | None):
            return f"the results of element {element.sequence} are damaged: {describe(element.results)} is not a list"
        if isinstance(element.element, Watermark) and element.results is not None:
            return f"element {element.sequence} is a watermark, but has results"
    for before, after in pairwise(elements):
        if before.sequence >= after.sequence:
            return f"the snapshot's sequence numbers must rise: {after.sequence} follows {before.sequence}"
    return None


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
