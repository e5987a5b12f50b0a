"""Deadlines: by when a connection must be read from, or used again, and the one task that closes it if it is not."""

from __future__ import annotations

from itertools import takewhile
from typing import Protocol

import trio

__all__ = ["Deadlines"]


class _Closable(Protocol):
    def close(self) -> None: ...


class Deadlines:
    """Closes each connection whose deadline comes before it is met.

    A connection on which a read took too long, or that was idle for too long, is closed in any case, and to close a
    socket wakes whoever waits for it. So a deadline needs no cancel scope, which costs more than all else that a
    request does on Trio: it is an entry in a dictionary, and one task sleeps until the first of them.

    Invariant: deadlines that were set with the same seconds come in the order in which they were set, and a
    dictionary, which keeps that order, is a priority queue. There is one for each number of seconds in use, and none
    is empty.

    **Cancellation** of whoever waits strikes nothing. The task is Trio's (a system task), for a transport has no
    nursery: it ends when it finds nothing to wait for, by `close`, and with the run.
    """

    def __init__(self) -> None:
        self._queues: dict[float, dict[_Closable, float]] = {}
        self._sleep: trio.CancelScope | None = None
        self._is_closed = False

    def set(self, connection: _Closable, seconds: float | None) -> None:
        """The connection must be heard of within so many seconds. One that has come already strikes at once.

        Args:
            connection: What is closed otherwise. It has no other deadline.
            seconds: From now. None: whenever it likes.
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
            trio.lowlevel.spawn_system_task(self._keep, self._sleep)
        elif due < self._sleep.deadline:
            self._sleep.deadline = due

    def meet(self, connection: _Closable, seconds: float | None) -> bool:
        """It was heard of; whether that was before the deadline struck. If not, it is closed."""
        if seconds is None:
            return True
        queue = self._queues.get(seconds, {})
        is_met = queue.pop(connection, None) is not None
        if is_met and not queue:
            del self._queues[seconds]
        return is_met

    def close(self) -> None:
        """End the task: no deadline strikes any more."""
        self._is_closed = True
        if self._sleep is not None:
            self._sleep.cancel()

    def abandon(self) -> None:
        """Forget all deadlines, in a forked child, where the task may not exist and must close nothing."""
        self._queues.clear()

    async def _keep(self, sleep: trio.CancelScope) -> None:
        try:
            while self._queues and not self._is_closed:
                with sleep:
                    await trio.sleep_forever()
                self._strike(trio.current_time())
                firsts = [next(iter(queue.values())) for queue in self._queues.values()]
                self._sleep = sleep = trio.CancelScope(deadline=min(firsts, default=0))
        finally:
            self._sleep = None

    def _strike(self, now: float) -> None:
        for seconds, queue in list(self._queues.items()):
            for connection, _ in list(takewhile(lambda item: item[1] <= now, queue.items())):
                self.meet(connection, seconds)
                connection.close()
