"""A bounded sample: every n-th item of a sequence of unknown length."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

__all__ = ["Sample"]

T = TypeVar("T")


class Sample(Generic[T]):
    """Every n-th of the items that are offered.

    When the sample is full, n doubles, and the items that are no longer due are dropped. So a sample always covers the
    whole sequence evenly, and the same sequence always has the same sample.

    Args:
        every: The first n, at least 1.
        limit: Upper limit of the items, at least 1.

    Attributes:
        every: The present n.
        offered: The number of items offered.
    """

    def __init__(self, every: int, limit: int) -> None:
        self.every = every
        self.offered = 0
        self._limit = limit
        self._items: dict[int, tuple[int, T]] = {}  # by key: its number among those offered, and the item

    def __len__(self) -> int:
        return len(self._items)

    def offer(self, key: int, create: Callable[[], T]) -> None:
        """Add an item under this key if it is due."""
        number = self.offered
        self.offered += 1
        if number % self.every == 0 and len(self._items) == self._limit:
            self._thin_out()
        if number % self.every == 0:
            self._items[key] = number, create()

    def get(self, key: int) -> T | None:
        """The item with this key. None if it is not in the sample."""
        found = self._items.get(key)
        return None if found is None else found[1]

    def items(self) -> Iterable[T]:
        """The items, in the order in which they were offered."""
        return [item for _, item in self._items.values()]

    def _thin_out(self) -> None:
        self.every *= 2
        self._items = {key: each for key, each in self._items.items() if each[0] % self.every == 0}
