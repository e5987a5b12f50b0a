"""Counts over time, in a bounded number of equal bins."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

__all__ = ["Series"]

# When there are more, each two become one
MAX_BINS = 120

# The width of the first bins, in seconds: a power of two, so that the edges of bins are exact
FINEST = 2**-7


@dataclass
class Series:
    """The number of starts, ends, outputs and failed calls in each bin of time.

    Args:
        width: The width of a bin, in seconds: a power of two.
        started, ended, received, failed: By bin, from the beginning of the run.
    """

    width: float = FINEST
    started: list[int] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)
    received: list[int] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)

    def add(self, counts: list[int], seconds: float) -> None:
        """Count one event, which happened this long after the beginning of the run."""
        while seconds >= MAX_BINS * self.width:
            self.coarsen()
        number = int(seconds / self.width)
        if number >= len(counts):
            counts.extend([0] * (number + 1 - len(counts)))
        counts[number] += 1

    def coarsen(self) -> None:
        """Double the width of the bins."""
        self.width *= 2
        for counts in self.lists():
            counts[:] = [sum(counts[index : index + 2]) for index in range(0, len(counts), 2)]

    @property
    def bins(self) -> int:
        """The number of bins up to the last event."""
        return max(map(len, self.lists()))

    def rates(self, counts: list[int]) -> list[float]:
        """Events per second, by bin."""
        return [count / self.width for count in self._padded(counts)]

    def running(self) -> list[int]:
        """Invocations that run at the end of each bin."""
        total, totals = 0, []
        for started, ended in zip(self._padded(self.started), self._padded(self.ended), strict=True):
            total += started - ended
            totals.append(total)
        return totals

    def lists(self) -> tuple[list[int], ...]:
        """All counts, in an order that is always the same."""
        return self.started, self.ended, self.received, self.failed

    def _padded(self, counts: list[int]) -> list[int]:
        return counts + [0] * (self.bins - len(counts))


def merged(parts: Iterable[tuple[float, Series]]) -> Series:
    """One series of many. Each comes with the time of its beginning, in seconds after the first one."""
    parts = list(parts)
    series = Series()
    last = max((shift + part.width * part.bins for shift, part in parts), default=0.0)
    coarsest = max((part.width for _, part in parts), default=FINEST)
    while series.width < coarsest or last > MAX_BINS * series.width:
        series.coarsen()
    for shift, part in parts:
        for counts, into in zip(part.lists(), series.lists(), strict=True):
            _move(counts, part.width, shift, into, series.width)
    return series


def _move(counts: list[int], width: float, shift: float, into: list[int], into_width: float) -> None:
    for number, count in enumerate(counts):
        target = int((shift + number * width) / into_width)
        if target >= len(into):
            into.extend([0] * (target + 1 - len(into)))
        into[target] += count
