"""The timer: one task for all instants of an operator, such as deadlines, ends of backoffs and openings of gates."""

from __future__ import annotations

from collections.abc import Callable

import trio
from trio.lowlevel import enable_ki_protection

__all__ = ["Timer"]


class Timer:
    """Calls a function at instants that may change.

    Args:
        next_instant: Returns the first instant, or `math.inf`. It may be too early.
        on_instant: Called at it, with the time.

    Attributes:
        at: The instant at which the timer wakes next. Compare with it before a call of `wake_by`, which costs more.
    """

    def __init__(self, next_instant: Callable[[], float], on_instant: Callable[[float], None]) -> None:
        self._next_instant = next_instant
        self._on_instant = on_instant
        self._sleep = trio.CancelScope()
        self.at = next_instant()

    def wake_by(self, at: float) -> None:
        """Wake at this instant, unless the timer wakes earlier."""
        if at < self.at:
            self.at = self._sleep.deadline = at

    @enable_ki_protection
    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            self.at = self._next_instant()
            self._sleep = trio.CancelScope(deadline=self.at)
            with self._sleep:
                await trio.sleep_forever()
            self._on_instant(trio.current_time())
