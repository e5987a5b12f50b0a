"""Counts of instants."""

from __future__ import annotations

from bisect import bisect_left

Points = list[tuple[float, float]]


def between(instants: list[float], start: float, end: float) -> int:
    """The number of sorted instants from `start` until before `end`."""
    return bisect_left(instants, end) - bisect_left(instants, start)


def most_in_a_second(instants: list[float]) -> int:
    """The most of these sorted instants in any second, wherever it begins."""
    most, first = 0, 0
    for last, instant in enumerate(instants):
        while instants[first] <= instant - 1.0:
            first += 1
        most = max(most, last - first + 1)
    return most


def per_second(instants: list[float], end: float) -> Points:
    """(middle, number of instants) of each second, until `end`."""
    return [(second + 0.5, float(between(instants, second, second + 1))) for second in range(int(end))]
