"""The pace: how long a task may go on without suspending."""

from __future__ import annotations

import trio

__all__ = ["SECONDS_PER_PASS", "Pace"]

SECONDS_PER_PASS = 0.005


class Pace:
    """Lets other tasks run in the midst of a loop that may never suspend: after some steps or 5 ms.

    The time is that of Trio's clock. On a virtual clock, where it may stand still, the steps remain.

    Args:
        steps: Upper limit of steps between two checkpoints, at least 1.
    """

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._start(trio.current_time())

    async def step(self) -> None:
        """Count a step, with a checkpoint if it is time for one."""
        self._left -= 1
        if self._left <= 0 or trio.current_time() >= self._due:
            await trio.lowlevel.checkpoint()
            self._start(trio.current_time())

    def _start(self, now: float) -> None:
        self._left = self._steps
        self._due = now + SECONDS_PER_PASS
