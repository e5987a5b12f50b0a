"""The users: several operators that have one policy open."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from ._run import RunChange

__all__ = ["Users"]


class Users:
    """Counts users, so that the first one opens what they share and the last one closes it.

    While one opens or closes it, others wait. If opening fails or is cancelled, the next one tries again. Users of an
    earlier Trio run do not count: whatever they left open is gone with it.
    """

    __slots__ = ("_lock", "_number", "_run_change")

    def __init__(self) -> None:
        self._number = 0
        self._lock = trio.Lock()
        self._run_change = RunChange()

    async def add(self, open_: Callable[[], Awaitable[None]]) -> None:
        """Add a user. Awaits `open_` for the first one."""
        async with self._lock_of_this_run():
            if not self._number:
                await open_()
            self._number += 1

    async def remove(self, close: Callable[[], Awaitable[None]]) -> None:
        """Remove a user. Awaits `close` after the last one.

        Cancellation: the user is removed, and `close` is awaited.
        """
        lock = self._lock_of_this_run()
        with trio.CancelScope(shield=True):  # for a scheduler pass: nobody opens or closes it while this user is there
            await lock.acquire()
        try:
            self._number = max(self._number - 1, 0)
            if not self._number:
                await close()
        finally:
            lock.release()

    def _lock_of_this_run(self) -> trio.Lock:
        if self._run_change.has_happened():
            self._number = 0
            self._lock = trio.Lock()
        return self._lock
