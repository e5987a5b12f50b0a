"""The difference of two clocks, as far as it is known."""

from __future__ import annotations

from math import inf

__all__ = ["ClockOffset"]

# Clocks may run at different speeds: seconds per second
DRIFT = 2e-4


class ClockOffset:
    """Bounds of the local clock minus that of a source, from instants of questions and answers, as in NTP.

    The bounds of several answers hold together, so the fastest answer decides for minutes.

    Attributes:
        least, most: The bounds, in seconds. Without an answer, they are infinite.
    """

    def __init__(self) -> None:
        self.least = -inf
        self.most = inf
        self._at = 0.0

    @property
    def uncertainty(self) -> float:
        """The distance of the bounds."""
        return self.most - self.least

    def learn(self, sent: float, there: float, received: float) -> None:
        """Use an answer.

        Args:
            sent, received: Local instants of the question and of the answer.
            there: The source's instant between them.
        """
        drift = DRIFT * (received - self._at)
        self._at = received
        least, most = sent - there, received - there
        self.least, self.most = max(least, self.least - drift), min(most, self.most + drift)
        if self.least > self.most:  # one of the clocks was set
            self.least, self.most = least, most
