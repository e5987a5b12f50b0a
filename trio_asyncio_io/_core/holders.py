"""The holders: for how long each gate has held back the calls that wait in a line."""

from __future__ import annotations

from operator import sub

from .sums import combined

__all__ = ["Holders"]


class Holders:
    """By gate, the time for which it has been the one that holds back a line.

    All calls in a line wait for the gate that holds back the first one. So what a call has waited for each gate is what
    these times have grown by, from the moment when it joined the line.
    """

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._holder = ""
        self._since = 0.0

    def change(self, gate: str, now: float) -> None:
        """From now on, this gate holds back the line."""
        if gate != self._holder:
            self._seconds = self.seconds(now)
            self._holder, self._since = gate, now

    def seconds(self, now: float) -> dict[str, float]:
        """By gate, its time so far."""
        return {**self._seconds, self._holder: self._seconds.get(self._holder, 0.0) + now - self._since}

    def since(self, earlier: dict[str, float], now: float) -> dict[str, float]:
        """By gate, its time since `seconds` returned `earlier`; without those that have none."""
        grown = combined(sub, self.seconds(now), earlier)
        return {gate: seconds for gate, seconds in grown.items() if seconds > 0}
