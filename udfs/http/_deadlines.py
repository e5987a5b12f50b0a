"""Deadlines: closes connections at the end of their read timeout, or of the time for which they may be idle."""

from __future__ import annotations

import math
from itertools import takewhile
from typing import Protocol

import trio

__all__ = ["Deadlines"]


class _Closable(Protocol):
    def close(self) -> None: ...


class Deadlines:
    """Closes each connection whose deadline expires before it is cleared.

    A connection is closed in any case when a read or its idleness takes too long, and closing a socket wakes the task
    that waits for it. So a deadline does not need a cancel scope, the largest cost of a request on Trio: it is an entry
    in a dictionary, and one task sleeps until the first of them.

    Invariant: deadlines that were set with the same number of seconds expire in the order in which they were set. So a
    dictionary, which preserves that order, is their priority queue. There is one for each number of seconds in use, and
    none is empty.

    **Cancellation** of a waiting task expires no deadline. The sleeping task is a system task of Trio, because a
    transport has no nursery. It ends when no deadline is left, with `close`, or with the run, at whose end every
    deadline expires.
    """

    def __init__(self) -> None:
        self._queues: dict[float, dict[_Closable, float]] = {}
        self._sleep: trio.CancelScope | None = None
        self._is_closed = False

    def set(self, connection: _Closable, seconds: float | None) -> None:
        """Close the connection in this many seconds, unless `clear` is called first.

        Args:
            connection: A connection without a deadline.
            seconds: From now. None: no deadline. 0, negative or NaN: the connection is closed immediately.
        """
        if seconds is None:
            return
        if not seconds > 0:
            connection.close()
            return
        due = trio.current_time() + seconds
        self._queues.setdefault(seconds, {})[connection] = due
        if self._sleep is None:
            self._sleep = trio.CancelScope(deadline=due)
            trio.lowlevel.spawn_system_task(self._run, self._sleep)
        elif due < self._sleep.deadline:
            self._sleep.deadline = due

    def clear(self, connection: _Closable, seconds: float | None) -> bool:
        """Remove the deadline that was set with these seconds. Returns False if it has expired."""
        if seconds is None:
            return True
        queue = self._queues.get(seconds, {})
        is_in_time = queue.pop(connection, None) is not None
        if is_in_time and not queue:
            del self._queues[seconds]
        return is_in_time

    def close(self) -> None:
        """End the task. No deadline expires any more."""
        self._is_closed = True
        if self._sleep is not None:
            self._sleep.cancel()

    async def _run(self, sleep: trio.CancelScope) -> None:
        try:
            while self._queues and not self._is_closed:
                with sleep:
                    await trio.sleep_forever()
                self._expire(trio.current_time())
                firsts = [next(iter(queue.values())) for queue in self._queues.values()]
                self._sleep = sleep = trio.CancelScope(deadline=min(firsts, default=0))
        except trio.Cancelled:  # the run ends, and the next one has another clock
            self._expire(math.inf)
            raise
        finally:
            self._sleep = None

    def _expire(self, now: float) -> None:
        for seconds, queue in list(self._queues.items()):
            for connection, _ in list(takewhile(lambda item: item[1] <= now, queue.items())):
                self.clear(connection, seconds)
                connection.close()
