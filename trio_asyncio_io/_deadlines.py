"""The deadlines: which running invocation must end next, and the one task that sees to it."""

from __future__ import annotations

from itertools import takewhile
from math import inf

import trio
from trio.lowlevel import enable_ki_protection

__all__ = ["Deadlines"]


class Deadlines:
    """Cancels each scope once its deadline has come, unless it was met before.

    Invariant: all timeouts are equal, so deadlines come in the order in which they were set, and a dictionary,
    which keeps that order, is a priority queue. Setting and meeting one costs as much as a dictionary's entry,
    a twentieth of what it costs to move a Trio scope's own deadline; one task sleeps until the first.

    Args:
        timeout: Seconds from setting a deadline until it strikes; `math.inf`: none ever does.
    """

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._by_scope: dict[trio.CancelScope, float] = {}
        self._bed = trio.lowlevel.ParkingLot()
        self._is_asleep = False

    def set(self, scope: trio.CancelScope, now: float) -> None:
        """The scope must be left within one timeout from now."""
        self._by_scope[scope] = now + self._timeout
        if self._is_asleep:
            self._is_asleep = False
            self._bed.unpark()

    def meet(self, scope: trio.CancelScope) -> bool:
        """The scope's work is done; whether that was before the deadline struck. If not, the scope is spent."""
        return self._by_scope.pop(scope, None) is not None

    @enable_ki_protection
    async def run(self) -> None:
        """Strike every deadline when it comes, until cancelled."""
        if self._timeout == inf:
            return
        while True:
            if self._by_scope:
                await trio.sleep_until(next(iter(self._by_scope.values())))
                self._strike(trio.current_time())
            else:
                self._is_asleep = True
                await self._bed.park()

    def _strike(self, now: float) -> None:
        struck = [scope for scope, _ in takewhile(lambda item: item[1] <= now, self._by_scope.items())]
        for scope in struck:
            del self._by_scope[scope]
            scope.cancel()
