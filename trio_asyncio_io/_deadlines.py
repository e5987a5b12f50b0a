"""Deadlines: one task cancels every invocation that exceeds its timeout."""

from __future__ import annotations

from itertools import takewhile
from math import inf
from operator import itemgetter
from weakref import WeakKeyDictionary

import trio
from trio.lowlevel import enable_ki_protection

from ._wakeup import Wakeup

__all__ = ["Deadlines", "deadline_of_call"]

# The deadlines, and the scope, of each task that makes calls
_OWNERS: WeakKeyDictionary[trio.lowlevel.Task, tuple[Deadlines, trio.CancelScope]] = WeakKeyDictionary()


def deadline_of_call() -> float:
    """When the present task's call is cancelled: the deadline of its element, or of a cancel scope around it."""
    deadlines, scope = _OWNERS.get(trio.lowlevel.current_task(), (None, None))
    deadline = inf if deadlines is None or scope is None else deadlines.by_scope.get(scope, inf)
    return min(deadline, trio.current_effective_deadline())


class Deadlines:
    """Cancels each scope when its deadline expires, unless the deadline was cleared before.

    Invariant: all timeouts are equal, so deadlines expire in the order in which they were set. A dictionary has that
    order, which makes it a priority queue. Only a deadline that was paused is sorted in. Setting
    and clearing a deadline costs a dictionary entry, a twentieth of what it costs to change the deadline of a Trio
    scope. One task sleeps until the first deadline.

    Args:
        timeout: Seconds from setting a deadline until it expires. With `math.inf` no deadline expires.

    Attributes:
        timeout: As given.
        by_scope: The deadlines that are set, in seconds on Trio's clock.
        has_deadline: Awaited while no deadline is set. Woken by `set`.
    """

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self.by_scope: dict[trio.CancelScope, float] = {}
        self.has_deadline = Wakeup()
        self._sleep = trio.CancelScope()

    def own(self, scope: trio.CancelScope) -> None:
        """Use this scope for the calls of the present task."""
        _OWNERS[trio.lowlevel.current_task()] = self, scope

    def pause(self) -> tuple[trio.CancelScope, float] | None:
        """Stop the time of the present task's call. Returns its scope and its deadline; None if that has expired."""
        _, scope = _OWNERS[trio.lowlevel.current_task()]
        deadline = self.by_scope.pop(scope, None)
        return None if deadline is None else (scope, deadline)

    def resume(self, paused: tuple[trio.CancelScope, float] | None, seconds: float) -> None:
        """Let the time of a paused call continue, after so many seconds."""
        if paused is not None:
            scope, deadline = paused
            self.by_scope[scope] = deadline + seconds
            self.by_scope = dict(sorted(self.by_scope.items(), key=itemgetter(1)))
            self._sleep.deadline = next(iter(self.by_scope.values()))
            self.has_deadline.wake()

    def set(self, scope: trio.CancelScope, now: float) -> None:
        """Start the timeout of a scope."""
        self.by_scope[scope] = now + self.timeout
        if self.has_deadline.is_awaited:
            self.has_deadline.wake()

    def clear(self, scope: trio.CancelScope) -> bool:
        """Remove a scope's deadline. False if it has expired: the scope is cancelled and cannot be used again."""
        return self.by_scope.pop(scope, None) is not None

    @enable_ki_protection
    async def run(self) -> None:
        """Cancel each scope when its deadline expires, until cancelled."""
        if self.timeout == inf:
            return
        while True:
            if self.by_scope:
                self._sleep = trio.CancelScope(deadline=next(iter(self.by_scope.values())))
                with self._sleep:
                    await trio.sleep_forever()
                self._expire(trio.current_time())
            else:
                await self.has_deadline.wait()

    def _expire(self, now: float) -> None:
        expired = [scope for scope, _ in takewhile(lambda item: item[1] <= now, self.by_scope.items())]
        for scope in expired:
            del self.by_scope[scope]
            scope.cancel()
