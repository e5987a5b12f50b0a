"""Helpers of the operator's tasks: wake-ups, checkpoints and clocks."""

from __future__ import annotations

from pathlib import Path
from time import thread_time

import trio
from trio.lowlevel import ParkingLot

__all__ = ["SECONDS_PER_PASS", "Pace", "Wakeup", "cpu_wait", "read_clocks"]


class Wakeup:
    """Tasks that wait until another task wakes them, one at a time and in the order in which they came.

    A wake-up for which nobody waits has no effect, so a task checks its condition first, and waits without a checkpoint
    in between.

    Attributes:
        is_awaited: Whether a task is waiting. Reading it is cheaper than calling `wake`.
    """

    def __init__(self) -> None:
        self._lot = ParkingLot()
        self.is_awaited = False

    def __len__(self) -> int:
        """The number of tasks that wait."""
        return len(self._lot)

    async def wait(self) -> None:
        """Wait until woken."""
        self.is_awaited = True
        try:
            await self._lot.park()
        finally:  # also if it was cancelled
            self.is_awaited = bool(self._lot)

    def wake(self) -> None:
        """Wake the task that has waited longest, if any."""
        if self.is_awaited:
            self._lot.unpark()
            self.is_awaited = bool(self._lot)


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


# The times of the present thread in nanoseconds: on the CPU, and ready to run while the CPU did something else
SCHEDSTAT = Path("/proc/thread-self/schedstat")


def read_clocks() -> tuple[float, float]:
    """The time on Trio's clock, and the time for which this thread used the CPU or waited for it, in seconds."""
    return trio.current_time(), thread_time() + cpu_wait()


def cpu_wait() -> float:
    """How long this thread was ready to run while the CPU did something else; 0.0 where the system does not count it.

    On a busy machine, the thread of a CPU-bound function has the CPU for a part of the time only.
    """
    try:
        return int(SCHEDSTAT.read_bytes().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0
