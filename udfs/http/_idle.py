"""Idle stacks: which idle connection goes out next, and which is the first to go."""

from __future__ import annotations

from collections import deque
from typing import Generic, Protocol, TypeVar

__all__ = ["IdleStacks", "Origin"]

# Scheme, host and port; and the name to verify in TLS, if it is not the host
Origin = tuple[bytes, bytes, int, str | None]


class _HasOrigin(Protocol):
    @property
    def origin(self) -> Origin: ...


C = TypeVar("C", bound=_HasOrigin)


class IdleStacks(Generic[C]):
    """Idle connections, a last-in-first-out stack per origin. Plain data: nothing here waits or closes.

    Each stack is in the order of arrival, so the one that has been idle longest over all origins lies at the
    bottom of its own stack. That is why every operation costs the same, however many connections there are.
    """

    def __init__(self) -> None:
        self._stacks: dict[Origin, deque[C]] = {}
        # A dictionary for its order: the first key has been idle longest.
        self._arrived: dict[C, None] = {}

    def __len__(self) -> int:
        """The number of idle connections, over all origins."""
        return len(self._arrived)

    def push(self, connection: C) -> None:
        """Lay a connection on top of its origin's stack."""
        self._stacks.setdefault(connection.origin, deque()).append(connection)
        self._arrived[connection] = None

    def pop(self, origin: Origin) -> C | None:
        """The connection of this origin that came last, taken off; None if there is none."""
        stack = self._stacks.get(origin)
        return None if stack is None else self._taken_off(stack.pop(), stack)

    def oldest(self) -> C | None:
        """The connection that has been idle longest, left where it is; None if there is none."""
        return next(iter(self._arrived), None)

    def pop_oldest(self) -> C:
        """The connection that has been idle longest, taken off.

        Raises:
            IndexError: There is none.
        """
        connection = self.oldest()
        if connection is None:
            raise IndexError("no connection is idle")
        stack = self._stacks[connection.origin]
        return self._taken_off(stack.popleft(), stack)

    def drain(self) -> list[C]:
        """All connections, taken off, the one that has been idle longest first."""
        connections = list(self._arrived)
        self._arrived.clear()
        self._stacks.clear()
        return connections

    def _taken_off(self, connection: C, stack: deque[C]) -> C:
        del self._arrived[connection]
        if not stack:
            del self._stacks[connection.origin]
        return connection
