"""Gates with one plain rule each, for tests that need a gate of some kind."""

from __future__ import annotations

from math import inf

from trio_asyncio_io._core.gate import Classify, ConfiguredGate, Outcome


class AtMost(ConfiguredGate):
    """Admits `most` calls at once.

    Attributes:
        running: The calls that run.
    """

    _arguments = ("most",)

    def __init__(self, most: int, *, classify: Classify | None = None, name: str | None = None) -> None:
        self.most = self.most_at_once = most
        self.running = 0
        self._set(classify, name)

    def delay(self, now: float, weight: float) -> float:
        """0.0 below the limit; else not before a call ends."""
        return 0.0 if self.running < self.most else inf

    def started(self, now: float, weight: float) -> None:
        """Count a running call."""
        self.running += 1

    def ended(self, now: float, seconds: float, outcome: Outcome, weight: float) -> None:
        """A call has ended."""
        self.running -= 1


class Throttle(ConfiguredGate):
    """Open until a call is throttled. No call starts for its `retry_after`, and later calls start `apart` seconds."""

    _arguments = ("apart",)

    def __init__(self, apart: float = 0.0, *, classify: Classify | None = None, name: str | None = None) -> None:
        self.apart = apart
        self.is_open = True
        self.next_start = 0.0
        self._set(classify, name)

    def delay(self, now: float, weight: float) -> float:
        """The rest of the pause."""
        return max(0.0, self.next_start - now)

    def started(self, now: float, weight: float) -> None:
        """The next call starts later."""
        if not self.is_open:
            self.next_start = now + self.apart

    def ended(self, now: float, seconds: float, outcome: Outcome, weight: float) -> None:
        """Pause for as long as the service asks."""
        if outcome.kind == "throttled":
            self.is_open = False
            self.next_start = max(self.next_start, now + (outcome.retry_after or 0.0))

    def may_forget(self, now: float) -> bool:
        """Whether it is open, or the pause has been over for ten minutes."""
        return self.is_open or now >= self.next_start + 600.0
