"""A gate in use: its time, and the operators that use it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import trio

from ._core.gate import Gate, Outcome

__all__ = ["GateInUse", "User", "use"]


@dataclass(eq=False, frozen=True, slots=True)
class User:
    """What an operator does when one of its gates has changed.

    Args:
        refresh: Called when a gate has become idle, or is idle no longer.
        ask_again: Called when a gate may admit a call earlier than it said.
    """

    refresh: Callable[[], None]
    ask_again: Callable[[], None]


class GateInUse:
    """A gate, on a clock that continues from one Trio run to the next. Each run has its own clock.

    Args:
        gate: As given.

    Attributes:
        gate: As given.
        users: The operators that use the gate now.
    """

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.users: set[User] = set()
        self._was_idle = gate.is_idle
        self._run: trio.lowlevel.TrioToken | None = None
        self._latest = 0.0
        self._offset = 0.0

    def enter_run(self) -> None:
        """Continue in the present Trio run, as if no time had passed since the last one."""
        token = trio.lowlevel.current_trio_token()
        if self._run is not token:
            self._run = token
            self._offset = self._latest - trio.current_time()
            self.users.clear()

    def delay(self, now: float, weight: float) -> float:
        """See `Gate.delay`. All instants are Trio's."""
        return self.gate.delay(self._at(now), weight)

    def started(self, now: float, weight: float) -> None:
        """See `Gate.started`."""
        self.gate.started(self._at(now), weight)

    def ended(self, now: float, seconds: float, outcome: Outcome, weight: float) -> None:
        """See `Gate.ended`. Notifies all users."""
        self.gate.ended(self._at(now), seconds, outcome, weight)
        self.notify()

    def notify(self) -> None:
        """Notify all users that the gate may have changed."""
        if self.gate.is_idle != self._was_idle:
            self._was_idle = self.gate.is_idle
            for user in self.users:
                user.refresh()
        for user in self.users:
            user.ask_again()

    def _at(self, now: float) -> float:
        self._latest = now + self._offset
        return self._latest


_IN_USE: WeakKeyDictionary[Gate, GateInUse] = WeakKeyDictionary()


def use(gate: Gate) -> GateInUse:
    """The one object for this gate, in the present Trio run."""
    in_use = _IN_USE.get(gate)
    if in_use is None:
        in_use = _IN_USE[gate] = GateInUse(gate)
    in_use.enter_run()
    return in_use
