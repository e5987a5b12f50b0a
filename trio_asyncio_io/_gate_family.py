"""A family of gates: the gates of all keys that were copied from one gate."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import trio
from trio.lowlevel import RunVar

from ._core.gate import Gate
from ._core.per_key import Copies
from ._gate_in_use import GateInUse, User, check_configuration, in_present_run

__all__ = ["GateFamily", "use_family"]

FEW = 64  # with fewer gates, a search for those that may be forgotten is not worth its cost
MOST = 10_000  # gates without calls that are kept for what they know


class GateFamily:
    """The gates of one family in the present Trio run. All operators that use the family share it.

    Args:
        copies: The gates, by key. Those of earlier runs are among them.

    Attributes:
        users: Called when the family has become idle, or is idle no longer.
    """

    def __init__(self, copies: Copies) -> None:
        self.users: set[Callable[[], None]] = set()
        self._copies = copies
        self._in_use: dict[Hashable, GateInUse] = {}
        self._busy = {key for key, gate in copies.items() if not gate.is_idle}
        self._enough = FEW

    @property
    def gate(self) -> Gate:
        """The gate that is copied."""
        return self._copies.gate

    @property
    def is_idle(self) -> bool:
        """Whether no call needs to ask."""
        return self.gate.is_idle and not self._busy

    def use(self, key: Hashable, user: User) -> GateInUse:
        """The gate of this key."""
        in_use = self._in_use.get(key)
        if in_use is None:
            self._forget_some()
            in_use = self._in_use[key] = in_present_run(self._copies[key])
            in_use.on_idle_change = lambda: self._refresh(key)
        in_use.users.add(user)
        return in_use

    def leave(self, key: Hashable, user: User) -> None:
        """An operator has no more calls of this key."""
        in_use = self._in_use[key]
        in_use.users.discard(user)
        if not in_use.users:
            del self._in_use[key]
            if in_use.may_forget(trio.current_time()):
                self._forget(key)

    def release(self, refresh: Callable[[], None]) -> None:
        """An operator has ended. A family without a name and without users is left to its `PerKey`."""
        self.users.discard(refresh)
        if not self.users and self.gate.name is None:
            _families_of_run().pop(_key(self._copies), None)

    def _forget_some(self) -> None:
        """Forget the keys without calls that may be forgotten, and the oldest ones if there are too many.

        The cost is a few steps per key, on average.
        """
        if len(self._copies) < self._enough:
            return
        now = trio.current_time()
        unused = [key for key in self._copies if key not in self._in_use]
        for number, key in enumerate(unused):
            if number < len(unused) - MOST or in_present_run(self._copies[key]).may_forget(now):
                self._forget(key)
        self._enough = max(FEW, min(2 * len(self._copies), len(self._copies) + MOST))

    def _forget(self, key: Hashable) -> None:
        del self._copies[key]
        self._set_busy(key, is_busy=False)

    def _refresh(self, key: Hashable) -> None:
        self._set_busy(key, is_busy=not self._copies[key].is_idle)

    def _set_busy(self, key: Hashable, *, is_busy: bool) -> None:
        was_idle = self.is_idle
        (self._busy.add if is_busy else self._busy.discard)(key)
        if self.is_idle != was_idle:
            for refresh in list(self.users):
                refresh()


# By copies, or by class and name
_FAMILIES: RunVar[dict[Hashable, GateFamily]] = RunVar("trio_asyncio_io families of gates")


def use_family(copies: Copies, refresh: Callable[[], None]) -> GateFamily:
    """The family of these copies, or of their class and name, in the present Trio run.

    Args:
        copies: Of a `PerKey`.
        refresh: Becomes a user of the family.

    Raises:
        ValueError: Another operator uses gates of this name with another configuration.
    """
    families, key = _families_of_run(), _key(copies)
    family = families.get(key)
    if family is None or not check_configuration(family.gate, copies.gate, is_used=bool(family.users)):
        family = families[key] = GateFamily(copies)
    family.users.add(refresh)
    return family


def _key(copies: Copies) -> Hashable:
    return id(copies) if copies.gate.name is None else (type(copies.gate), copies.gate.name)


def _families_of_run() -> dict[Hashable, GateFamily]:
    try:
        return _FAMILIES.get()
    except LookupError:
        _FAMILIES.set({})
        return _FAMILIES.get()
