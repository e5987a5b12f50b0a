"""A gate in use: its time, and the operators that use it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import trio
from trio.lowlevel import RunVar

from ._core.gate import Gate, Outcome

__all__ = ["GateInUse", "User", "check_configuration", "in_present_run", "use"]


@dataclass(eq=False, frozen=True, slots=True)
class User:
    """What an operator does when one of its gates has changed.

    Args:
        refresh: Called when a gate has become idle, or is idle no longer.
        ask_again: Called when a gate may admit a call earlier than it said.
    """

    refresh: Callable[[], None]
    ask_again: Callable[[], None]


class _Clock:
    """A clock that continues from one Trio run to the next, as if no time had passed. Each run has its own clock."""

    __slots__ = ("_latest", "_offset", "_run")

    def __init__(self) -> None:
        self._run: trio.lowlevel.TrioToken | None = None
        self._latest = 0.0
        self._offset = 0.0

    def enter_run(self) -> None:
        """Continue in the present Trio run."""
        token = trio.lowlevel.current_trio_token()
        if self._run is not token:
            self._run = token
            self._offset = self._latest - trio.current_time()

    def at(self, now: float) -> float:
        """The time of this clock at an instant of Trio's."""
        self._latest = now + self._offset
        return self._latest


class GateInUse:
    """A gate in the present Trio run. All instants are Trio's.

    Args:
        gate: The first of its name that was used, or the only one.
        clock: The gate's.

    Attributes:
        gate: As given.
        users: The operators that use the gate now.
        on_idle_change: Called before the users when the gate has become idle, or is idle no longer.
    """

    def __init__(self, gate: Gate, clock: _Clock) -> None:
        self.gate = gate
        self.users: set[User] = set()
        self.on_idle_change: Callable[[], None] = _do_nothing
        self._at = clock.at
        self._was_idle = gate.is_idle

    def delay(self, now: float, weight: float) -> float:
        """See `Gate.delay`."""
        return self.gate.delay(self._at(now), weight)

    def started(self, now: float, weight: float) -> None:
        """See `Gate.started`."""
        self.gate.started(self._at(now), weight)

    def ended(self, now: float, seconds: float, outcome: Outcome, weight: float) -> None:
        """See `Gate.ended`. Notifies all users."""
        self.gate.ended(self._at(now), seconds, outcome, weight)
        self.notify()

    def may_forget(self, now: float) -> bool:
        """See `Gate.may_forget`."""
        return self.gate.may_forget(self._at(now))

    def notify(self) -> None:
        """Notify all users that the gate may have changed."""
        if self.gate.is_idle != self._was_idle:
            self._was_idle = self.gate.is_idle
            self.on_idle_change()
            for user in self.users:
                user.refresh()
        for user in self.users:
            user.ask_again()

    def leave(self, user: User) -> None:
        """Remove a user. A gate without a name and without users is forgotten; what it has learnt is in the gate."""
        self.users.discard(user)
        if not self.users and self.gate.name is None:
            _gates_of_run().pop(_key(self.gate), None)


# Those that the present Trio run uses, and those with a name that it has used
_IN_USE: RunVar[dict[Hashable, GateInUse]] = RunVar("trio_asyncio_io gates")
_CLOCKS: WeakKeyDictionary[Gate, _Clock] = WeakKeyDictionary()


def use(gate: Gate, user: User) -> GateInUse:
    """The one object for this gate, or for the gates of its class and name, in the present Trio run.

    Raises:
        ValueError: Another operator uses a gate of this name with another configuration.
    """
    gates, key = _gates_of_run(), _key(gate)
    in_use = gates.get(key)
    if in_use is None or not check_configuration(in_use.gate, gate, is_used=bool(in_use.users)):
        in_use = gates[key] = in_present_run(gate)
    in_use.users.add(user)
    return in_use


def in_present_run(gate: Gate) -> GateInUse:
    """A gate in the present Trio run, without users."""
    clock = _CLOCKS.setdefault(gate, _Clock())
    clock.enter_run()
    return GateInUse(gate, clock)


def check_configuration(first: Gate, given: Gate, *, is_used: bool) -> bool:
    """Whether two gates of one name have the same configuration.

    Raises:
        ValueError: They have not, and the first one is used.
    """
    is_same = first.configuration() == given.configuration()
    if is_used and not is_same:
        raise ValueError(
            f"two different gates have the name {given.name!r}: {first} is in use, and {given} was given. Give both "
            "the same arguments, or different names"
        )
    return is_same


def _key(gate: Gate) -> Hashable:
    return gate if gate.name is None else (type(gate), gate.name)


def _gates_of_run() -> dict[Hashable, GateInUse]:
    try:
        return _IN_USE.get()
    except LookupError:
        _IN_USE.set({})
        return _IN_USE.get()


def _do_nothing() -> None:
    pass
