"""The wake-up: ends the wait of a task."""

from __future__ import annotations

from trio.lowlevel import ParkingLot

__all__ = ["Wakeup"]


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
