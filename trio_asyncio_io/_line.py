"""The line: the calls that wait for gates, in the order in which they may start."""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

import trio

from ._core.holders import Holders
from ._core.queue import Entry

__all__ = ["Line", "Place", "rank_of"]


@dataclass(eq=False, slots=True)
class Place:
    """A place in the line.

    Attributes:
        rank: The lowest one is the first.
        moved: Set when the gates must be asked again.
    """

    rank: tuple[bool, int, int]
    moved: trio.Event = field(default_factory=trio.Event)

    def __lt__(self, other: Place) -> bool:
        return self.rank < other.rank

    def move(self) -> None:
        """Let the call ask again."""
        self.moved.set()
        self.moved = trio.Event()


def rank_of(entry: Entry) -> tuple[bool, int, int]:
    """The rank of a record's next call."""
    return not entry.attempts, entry.attempts, entry.sequence


class Line:
    """The calls of one operator that wait for its gates.

    Retries are before new records, those with few attempts first, so that not one record makes all the probes of a
    circuit breaker; then comes the oldest record. Only the first in the line asks the gates.

    Attributes:
        holders: By gate, how long it has held back this line.
    """

    def __init__(self) -> None:
        self.holders = Holders()
        self._places: list[Place] = []

    def __bool__(self) -> bool:
        return bool(self._places)

    def join(self, entry: Entry) -> Place:
        """A place for the next call of this record."""
        place = Place(rank_of(entry))
        self.insert(place)
        return place

    def insert(self, place: Place) -> None:
        """Add a place."""
        heappush(self._places, place)

    def leave(self, place: Place) -> None:
        """The call starts, or does not wait any more."""
        if self.is_first(place):
            heappop(self._places)
            self.move_first()
        else:
            self._places.remove(place)
            heapify(self._places)

    def is_first(self, place: Place) -> bool:
        """Whether the call may ask the gates."""
        return self._places[0] is place

    @property
    def first(self) -> Place:
        """The place whose call may ask the gates."""
        return self._places[0]

    def move_first(self) -> None:
        """Let the first call ask again."""
        if self._places:
            self._places[0].move()
