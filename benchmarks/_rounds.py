"""Alternating rounds: a disturbance of the machine affects all contenders."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

import numpy as np

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Rounds:
    """One number for each contender and round. The first contender is the base of the ratios.

    Attributes:
        numbers: The numbers by contender, in the order of the rounds.
    """

    numbers: dict[str, list[float]]

    @property
    def base(self) -> str:
        """The contender that the others are compared with."""
        return next(iter(self.numbers))

    def median(self, name: str) -> float:
        """The median of a contender's numbers."""
        return median(self.numbers[name])

    def ratios(self, name: str, base: str | None = None) -> list[float]:
        """A contender's number divided by the base's in each round; noise that lasts for a round cancels out."""
        bases = self.numbers[self.base if base is None else base]
        return [number / base for number, base in zip(self.numbers[name], bases, strict=True)]

    def ratio(self, name: str, base: str | None = None) -> float:
        """The median of the ratios."""
        return median(self.ratios(name, base))

    def spread(self, name: str) -> tuple[float, float]:
        """The first and the third quartile of the ratios."""
        low, high = np.percentile(self.ratios(name), (25, 75))
        return float(low), float(high)


def measure(
    contenders: Mapping[str, Callable[[], float]], rounds: int, on_step: Callable[[], object], *, warm_up: bool = True
) -> Rounds:
    """Each contender's number in each round; see `alternate`. The first contender is the base."""
    return Rounds(alternate(contenders, rounds, on_step, warm_up=warm_up))


def alternate(
    contenders: Mapping[str, Callable[[], T]], rounds: int, on_step: Callable[[], object], *, warm_up: bool = True
) -> dict[str, list[T]]:
    """The results of each contender in each round.

    Args:
        contenders: Callables by name; each call is one measurement.
        rounds: The number of rounds. Each one starts with another contender.
        on_step: Called after each measurement.
        warm_up: Whether to run one more round first, which does not count.
    """
    names = list(contenders)
    found: dict[str, list[T]] = {name: [] for name in names}
    for number in range(-1 if warm_up else 0, rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            result = contenders[name]()
            if number >= 0:
                found[name].append(result)
            on_step()
    return found


def wall_seconds(function: Callable[[], object]) -> float:
    """Wall time of a call."""
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def in_words(rounds: int) -> str:
    """The number of rounds, for the notes of a table."""
    return f"median of {rounds} alternating rounds" if rounds > 1 else "one round"
