"""The snapshot: what has been accepted and not received yet, as plain data that pickles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from .describe import describe
from .elements import Watermark

__all__ = ["VERSION", "Snapshot", "SnapshotElement", "SnapshotError", "problem_of"]

VERSION = 1


class SnapshotError(ValueError):
    """A snapshot cannot be restored: the value is not a snapshot, has another version, or is damaged."""


@dataclass(frozen=True, slots=True)
class SnapshotElement:
    """One element of a snapshot.

    Attributes:
        sequence: Its position in the operator's input, counted from 0; restored elements count first.
        element: The `StreamRecord`, `Watermark` or bare value that was accepted.
        results: The outputs that are there already and were not received; None while there are none, and
            for a watermark.
    """

    sequence: int
    element: Any
    results: list[Any] | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Every element accepted and not yet received by the consumer, in the order of arrival.

    For a consumer that has received k outputs when it takes the snapshot, those k outputs and the outputs
    of a run that restores it are exactly the outputs of an undisturbed run: none lost, none twice.

    Attributes:
        elements: The elements, by ascending sequence.
        version: The form of this data; another version is refused.
        taken: How many elements of the source the operator has taken, in this run and in those that it was
            restored from. To continue with a source that can be read again, skip this many. Watermarks that
            `assign_watermarks` inserted do not count; watermarks of the source itself do.
    """

    elements: tuple[SnapshotElement, ...] = ()
    version: int = VERSION
    taken: int = 0

    def __len__(self) -> int:
        """The number of elements, watermarks included."""
        return len(self.elements)


def problem_of(snapshot: object) -> str | None:
    """Why this cannot be restored, or None if it can."""
    if not isinstance(snapshot, Snapshot):
        return f"restore takes a Snapshot, got {describe(snapshot)}"
    if snapshot.version != VERSION:
        return (
            f"the snapshot has version {describe(snapshot.version)}, and this release reads version {VERSION}: "
            "finish it with the release that took it"
        )
    if not isinstance(snapshot.elements, Sequence):
        return f"the snapshot's elements are damaged: {describe(snapshot.elements)} is no sequence"
    taken: object = snapshot.taken
    if not isinstance(taken, int) or taken < 0:
        return f"the snapshot's count of elements taken is damaged: {describe(taken)}"
    return _problem_of_elements(snapshot.elements)


def _problem_of_elements(elements: Sequence[Any]) -> str | None:
    for position, element in enumerate(elements):
        if not isinstance(element, SnapshotElement):
            return f"the snapshot's element {position} is damaged: {describe(element)} is no SnapshotElement"
        if not isinstance(element.sequence, int):
            return f"the snapshot's element {position} has no sequence number, but {describe(element.sequence)}"
        if not isinstance(element.results, list | tuple | None):
            return f"the results of element {element.sequence} are damaged: {describe(element.results)} is no list"
        if isinstance(element.element, Watermark) and element.results is not None:
            return f"element {element.sequence} is a watermark, and a watermark has no results"
    for before, after in pairwise(elements):
        if before.sequence >= after.sequence:
            return f"the snapshot's sequence numbers do not rise: {after.sequence} follows {before.sequence}"
    return None
