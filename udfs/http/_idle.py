"""IdleStacks: idle connections, on a stack per origin. Plain data."""

from __future__ import annotations

from collections import deque
from typing import Generic, Protocol, TypeVar

from ._origin import Origin

__all__ = ["IdleStacks"]


class _HasOrigin(Protocol):
    @property
    def origin(self) -> Origin: ...


C = TypeVar("C", bound=_HasOrigin)


class IdleStacks(Generic[C]):
    """Idle connections, on a last-in-first-out stack per origin. It neither waits nor closes anything.

    Each stack is in order of arrival, so the connection that has been idle longest over all origins is at the bottom
    of its stack. Therefore the cost of every operation is independent of the number of connections.
    """

    def __init__(self) -> None:
        self._stacks: dict[Origin, deque[C]] = {}
        # A dictionary for its order: the first key has been idle longest
        self._by_arrival: dict[C, None] = {}

    def __len__(self) -> int:
        """The number of idle connections over all origins."""
        return len(self._by_arrival)

    def push(self, connection: C) -> None:
        """Put a connection on top of its origin's stack."""
        self._stacks.setdefault(connection.origin, deque()).append(connection)
        self._by_arrival[connection] = None

    def pop(self, origin: Origin) -> C | None:
        """Remove and return the newest connection of an origin; None if it has none."""
        stack = self._stacks.get(origin)
        return None if stack is None else self._removed(stack.pop(), stack)

    def oldest(self) -> C | None:
        """Return the connection that has been idle longest; None if no connection is idle."""
        return next(iter(self._by_arrival), None)

    def pop_oldest(self) -> C:
        """Remove and return the connection that has been idle longest.

        Raises:
            IndexError: No connection is idle.
        """
        connection = self.oldest()
        if connection is None:
            raise IndexError("no connection is idle")
        stack = self._stacks[connection.origin]
        return self._removed(stack.popleft(), stack)

    def drain(self) -> list[C]:
        """Remove and return all connections, the one that has been idle longest first."""
        connections = list(self._by_arrival)
        self._by_arrival.clear()
        self._stacks.clear()
        return connections

    def _removed(self, connection: C, stack: deque[C]) -> C:
        del self._by_arrival[connection]
        if not stack:
            del self._stacks[connection.origin]
        return connection
