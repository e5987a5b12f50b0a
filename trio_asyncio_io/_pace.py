"""The pace: how long a task may run between two checkpoints."""

from __future__ import annotations

import trio

__all__ = ["SECONDS_PER_PASS", "Pace"]

SECONDS_PER_PASS = 0.005


class Pace:
    """Lets other tasks run during a loop that may never suspend: after a number of steps, or after 5 ms.

    If the other tasks then run for longer than 10 ms, the next steps may take half as long as they took. Otherwise a
    feeder could not keep thousands of workers busy.

    The time is Trio's. A virtual clock may stand still, and then only the steps count.

    Args:
        steps: Upper limit of steps between two checkpoints, at least 1.

    Attributes:
        steps_left, due: The number of steps, and the time, until the next checkpoint.
    """

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._restart()

    def is_due(self, now: float) -> bool:
        """Count a step. Returns whether the task must call `checkpoint` before the next one."""
        self.steps_left -= 1
        return self.steps_left <= 0 or now >= self.due

    async def checkpoint(self) -> None:
        """Let other tasks run, and count from here."""
        began = trio.current_time()
        await trio.lowlevel.checkpoint()
        self._restart(trio.current_time() - began)

    async def step(self) -> None:
        """Count a step, and run a checkpoint if one is due."""
        if self.is_due(trio.current_time()):
            await self.checkpoint()

    def _restart(self, seconds_of_others: float = 0.0) -> None:
        self.steps_left = self._steps
        self.due = trio.current_time() + max(SECONDS_PER_PASS, seconds_of_others / 2)
