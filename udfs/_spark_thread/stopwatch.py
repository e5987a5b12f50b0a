"""Stopwatch: the time that one thread spends in something, read by another thread."""

from __future__ import annotations

from time import perf_counter

__all__ = ["Stopwatch"]


class Stopwatch:
    """The sum of the times from `start` to `stop`. One thread may start and stop it, and any may read it."""

    def __init__(self) -> None:
        self._state: tuple[float, float | None] = (0.0, None)  # one attribute, which is read and written at once

    def start(self) -> None:
        """The thread begins."""
        self._state = (self._state[0], perf_counter())

    def stop(self) -> None:
        """The thread has finished."""
        self._state = (self.seconds, None)

    @property
    def seconds(self) -> float:
        """The time so far, in seconds."""
        total, since = self._state
        return total if since is None else total + perf_counter() - since
