"""A count of the users of a shared resource."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from ._run_change import RunChange

__all__ = ["Users"]


class Users:
    """Counts users. The first one opens the shared resource, and the last one closes it.

    While one user opens or closes it, others wait. If opening fails or is cancelled, the next user tries again. Users
    of an earlier Trio run do not count, because whatever they left open ended with it.
    """

    __slots__ = ("_count", "_lock", "_run_change")

    def __init__(self) -> None:
        self._count = 0
        self._lock = trio.Lock()
        self._run_change = RunChange()

    async def add(self, open_: Callable[[], Awaitable[None]]) -> None:
        """Add a user. Awaits `open_` for the first one."""
        async with self._lock_of_this_run():
            if not self._count:
                await open_()
            self._count += 1

    async def remove(self, close: Callable[[], Awaitable[None]]) -> None:
        """Remove a user. Awaits `close` after the last one.

        Cancellation: the user is removed, and `close` is awaited.
        """
        lock = self._lock_of_this_run()
        with trio.CancelScope(shield=True):  # short, because nobody opens or closes it while this user is counted
            await lock.acquire()
        try:
            self._count = max(self._count - 1, 0)
            if not self._count:
                await close()
        finally:
            lock.release()

    def _lock_of_this_run(self) -> trio.Lock:
        if self._run_change.has_happened():
            self._count = 0
            self._lock = trio.Lock()
        return self._lock
