"""The gates of one key in one operator, and the calls that wait for them without a slot.

A task calls the first in the line when the gates may admit it. The call then waits for a slot, and asks the gates
itself. Until it has started, it stays the first in the line.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from math import inf

import trio
from trio.lowlevel import enable_ki_protection

from ._admissions import Passage, Weights
from ._core.gate import Gate
from ._core.queue import Entry
from ._gate_family import GateFamily
from ._gate_group import GateGroup
from ._gate_in_use import User
from ._line import Place, rank_of

__all__ = ["GatesOfKey"]


@dataclass(eq=False, slots=True)
class _Waiting(Place):
    """The place of a call that waits without a slot.

    Attributes:
        weights: What it weighs.
        call: Lets the call continue, as soon as it has a slot.
        is_called: Whether that has happened.
    """

    weights: Sequence[float] = field(kw_only=True)
    call: Callable[[], None] = field(kw_only=True)
    is_called: bool = False


class GatesOfKey:
    """The gates of one key in one operator.

    Args:
        key: The key.
        families: Of the gates.
        plain: The operator's other gates, which its calls pass as well.
        given: All of these gates, as given.
        nursery: Owns the task that calls those that wait.
        on_change: Called when a call waits, or none waits any more.

    Attributes:
        group: The gates.
        passage: What the calls pass.
    """

    def __init__(
        self,
        key: Hashable,
        families: Sequence[GateFamily],
        plain: GateGroup,
        given: Sequence[Gate],
        *,
        nursery: trio.Nursery,
        on_change: Callable[[GatesOfKey], None],
    ) -> None:
        self._key = key
        self._families = families
        self._nursery = nursery
        self._on_change = on_change
        self._user = User(_do_nothing, self._ask_again)
        self._places: dict[int, _Waiting] = {}  # by sequence
        self._is_served = False
        self._changed = trio.Event()
        self.group = GateGroup()
        self._line = self.group.line
        self.group.in_use += [family.use(key, self._user) for family in families]
        self.passage = Passage(given, (*plain.in_use, *self.group.in_use))
        self._of_key = slice(len(plain.in_use), None)

    @property
    def has_line(self) -> bool:
        """Whether calls wait."""
        return bool(self._line)

    @property
    def is_in_use(self) -> bool:
        """Whether calls wait, or run."""
        return self.has_line or self.passage.running > 0

    def close(self) -> None:
        """Leave the gates."""
        for family in self._families:
            family.leave(self._key, self._user)

    def admits(self, entry: Entry, weights: Weights) -> bool:
        """Whether the gates admit the next call of this record, and no other one comes first.

        Raises:
            Exception: A gate's own, such as a `RefusedError`.
        """
        if self._line and self._line.first is not self._places.get(entry.sequence):
            return False
        return not self.group.delay(weights[self._of_key])

    def join(self, entry: Entry, weights: Weights, call: Callable[[], None]) -> None:
        """Wait in the line, until `call` is called. It is called again only after another `join`."""
        place = self._places.get(entry.sequence)
        if place is None:
            place = _Waiting(rank_of(entry), weights=weights[self._of_key], call=call)
            self._places[entry.sequence] = place
            self._line.insert(place)
            self._on_change(self)
        place.call, place.is_called = call, False
        self._ask_again()
        if not self._is_served:
            self._is_served = True
            self._nursery.start_soon(self._serve, name="trio_asyncio_io gates of a key")

    def leave(self, entry: Entry) -> None:
        """The call starts, or is not made."""
        place = self._places.pop(entry.sequence, None)
        if place is not None:
            self._line.leave(place)
            self._ask_again()
            self._on_change(self)

    def _ask_again(self) -> None:
        self._changed.set()

    @enable_ki_protection
    async def _serve(self) -> None:
        while self._line:
            self._changed = trio.Event()
            with trio.move_on_after(self._delay_of_first()):
                await self._changed.wait()
        self._is_served = False

    def _delay_of_first(self) -> float:
        """The seconds until the first call may ask. Calls it if it may ask now."""
        place = self._line.first
        assert isinstance(place, _Waiting)
        if place.is_called:
            return inf
        try:
            delay = self.group.delay(place.weights)
        except Exception:  # noqa: BLE001 - the call gets the exception when it asks itself
            delay = 0.0
        if delay:
            return delay
        place.is_called = True
        place.call()
        return inf


def _do_nothing() -> None:
    pass
