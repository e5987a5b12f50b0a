"""Keyed gates: those of a `PerKey`, by key, in one operator."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import trio

from ._core.gate import Gate
from ._core.per_key import PerKey
from ._gate_family import GateFamily, use_family
from ._gate_group import GateGroup
from ._gates_of_key import GatesOfKey

__all__ = ["KeyedGates"]

FEW = 64  # with fewer keys, a search for those without calls is not worth its cost


class KeyedGates:
    """The gates of a `PerKey` in one operator.

    Args:
        per_key: As given.
        plain: The operator's other gates.
        given: All gates, those that are not per key first.
        refresh: Called when `is_idle` may have changed.
    """

    def __init__(self, per_key: PerKey, plain: GateGroup, given: Sequence[Gate], refresh: Callable[[], None]) -> None:
        self._key = per_key.key
        self._per_key = per_key
        self._plain = plain
        self._given = given
        self._refresh = refresh
        self._families: list[GateFamily] = []
        self._of_key: dict[Hashable, GatesOfKey] = {}
        self._with_line: set[GatesOfKey] = set()
        self._enough = FEW

    def open(self, nursery: trio.Nursery) -> None:
        """The operator starts.

        Raises:
            ValueError: Another operator uses gates of one of the names with another configuration.
        """
        self._nursery = nursery
        for copies in self._per_key.copies:
            self._families.append(use_family(copies, self._refresh))

    def close(self) -> None:
        """The operator has ended."""
        for each in self._of_key.values():
            each.close()
        for family in self._families:
            family.release(self._refresh)

    @property
    def is_idle(self) -> bool:
        """Whether calls need not ask, because no key has gates that hold back calls."""
        return not self._with_line and all(family.is_idle for family in self._families)

    def of(self, value: object) -> GatesOfKey | None:
        """The gates of this value's key. None: it has none.

        Raises:
            Exception: `key` raised.
        """
        key = self._key(value)
        if key is None:
            return None
        found = self._of_key.get(key)
        if found is None:
            self._drop_some()
            found = self._of_key[key] = GatesOfKey(
                key, self._families, self._plain, self._given, nursery=self._nursery, on_change=self._changed
            )
        return found

    def _drop_some(self) -> None:
        """Drop the keys without calls. The cost is a few steps per key, on average."""
        if len(self._of_key) >= self._enough:
            for key in [key for key, each in self._of_key.items() if not each.is_in_use]:
                self._of_key.pop(key).close()
            self._enough = max(FEW, 2 * len(self._of_key))

    def _changed(self, gates: GatesOfKey) -> None:
        (self._with_line.add if gates.has_line else self._with_line.discard)(gates)
        self._refresh()
