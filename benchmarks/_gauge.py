"""Counts calls: all of them, those in flight, and the peak."""

from __future__ import annotations


class Gauge:
    """Counts the calls in flight. For one thread.

    Attributes:
        calls: Calls started.
        running: Calls in flight now.
        peak: The largest number of calls in flight at once.
    """

    def __init__(self) -> None:
        self.calls = 0
        self.running = 0
        self.peak = 0

    def __enter__(self) -> None:
        self.calls += 1
        self.running += 1
        self.peak = max(self.peak, self.running)

    def __exit__(self, *_: object) -> None:
        self.running -= 1
