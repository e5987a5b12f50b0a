"""The yields: for how long invocations have had no slot."""

from __future__ import annotations

__all__ = ["Yields"]


class Yields:
    """The times without a slot, of invocations that gave theirs back during a backoff.

    Attributes:
        ended: The sum for the invocations that have ended, in seconds.
    """

    def __init__(self) -> None:
        self.ended = 0.0
        self._past: dict[int, float] = {}  # by sequence: the times that are over
        self._since: dict[int, float] = {}  # by sequence: the beginning of the present one

    def begin(self, sequence: int, now: float) -> None:
        """An invocation gives its slot back."""
        self._since[sequence] = now

    def end(self, sequence: int, now: float) -> None:
        """It has a slot again, or does not wait for one any more."""
        self._past[sequence] = self._past.get(sequence, 0.0) + now - self._since.pop(sequence)

    def finish(self, sequence: int) -> None:
        """The invocation has ended."""
        self.ended += self._past.pop(sequence, 0.0)

    def running(self, now: float) -> float:
        """The sum for the invocations that have not ended."""
        return sum(self._past.values()) + sum(now - since for since in self._since.values())
