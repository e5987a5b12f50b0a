"""The snapshot: every element accepted and not yet received, as plain data that can be pickled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Generic, TypeAlias

from .._values.describe import describe
from .dead_letter import DeadLetter
from .elements import Watermark
from .parameters import AnyByDefault, E_co, O_co

VERSION = 1

Contents: TypeAlias = Sequence[Any] | DeadLetter | None  # of an element: its outputs, its dead letter, or neither


class SnapshotError(ValueError):
    """A snapshot cannot be restored: it is not a `Snapshot`, has another version, or is damaged."""


@dataclass(frozen=True, slots=True)
class SnapshotElement(AnyByDefault, Generic[E_co, O_co]):
    """One element of a snapshot.

    Attributes:
        sequence: Its position in the operator's input, counted from 0. Restored elements come first.
        element: The `StreamRecord`, `Watermark` or bare value that was accepted.
        results: The outputs of a completed element that were not received, or its dead letter. None if the element is
            not completed, and for a watermark.
        is_output: Whether the only result is a `DeadLetter` that the function has returned, and not the element's own.
    """

    sequence: int
    element: E_co | Watermark
    results: list[O_co | DeadLetter[E_co]] | None = None
    is_output: bool = field(default=False, repr=False)


@dataclass(frozen=True, slots=True)
class Snapshot(AnyByDefault, Generic[E_co, O_co]):
    """Every element accepted and not yet received by the consumer, in arrival order.

    If a consumer has received k outputs when it takes the snapshot, then these k outputs and the outputs of a run that
    restores the snapshot are exactly the outputs of an undisturbed run: none is lost, none comes twice. With `flatten`,
    unordered outputs of other elements may come between those of an element of which some had been received.

    Attributes:
        elements: The elements, by ascending sequence.
        version: The version of this format. A snapshot with another version is refused.
        taken: The number of elements that were taken from the source, in this run and in the runs that it was restored
            from. To continue with a source that can be read again, skip this number of elements. Watermarks that
            `assign_watermarks` inserted do not count; watermarks of the source do.
    """

    elements: tuple[SnapshotElement[E_co, O_co], ...] = ()
    version: int = VERSION
    taken: int = 0

    def __len__(self) -> int:
        """The number of elements, watermarks included."""
        return len(self.elements)

    def __bool__(self) -> bool:
        """True, also without elements: `taken` says where to continue."""
        return True


def stored_element(sequence: int, element: Any, has: Contents) -> SnapshotElement:
    """An element as a snapshot stores it."""
    if isinstance(has, DeadLetter):
        return SnapshotElement(sequence, element, [has])
    results = None if has is None else list(has)
    return SnapshotElement(sequence, element, results, is_output=_is_dead_letter(results))


def contents_of(element: SnapshotElement) -> Contents:
    """The outputs or the dead letter of a snapshot's element, or None if it has neither."""
    if element.results and _is_dead_letter(element.results) and not element.is_output:
        found: DeadLetter = element.results[0]
        return found
    return element.results


def _is_dead_letter(results: Sequence[Any] | None) -> bool:
    return results is not None and len(results) == 1 and isinstance(results[0], DeadLetter)


def problem_of(snapshot: object) -> str | None:
    """Why a value cannot be restored as a snapshot, or None if it can."""
    if not isinstance(snapshot, Snapshot):
        return f"restore must be a Snapshot, got {describe(snapshot)}"
    if snapshot.version != VERSION:
        return (
            f"the snapshot has version {describe(snapshot.version)}, and this release reads version {VERSION}: "
            "restore it with the release that took it"
        )
    problem = _problem_of_parts(snapshot)
    return problem and f"{problem}. Restore a snapshot as results.snapshot() returned it"


def _problem_of_parts(snapshot: Snapshot[Any, Any]) -> str | None:
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
    for before, after in pairwise(elements):
        if before.sequence >= after.sequence:
            return f"the snapshot's sequence numbers must rise: {after.sequence} follows {before.sequence}"
    return None
