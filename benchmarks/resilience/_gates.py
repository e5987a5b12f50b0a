"""What makes the gates of all tasks of a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ._leases import SimulatedSource, leases
from ._run import GatesOfTask

__all__ = ["BACKOFF", "Gates", "each", "leased", "none"]

BACKOFF = "backoff only"  # the contender without a gate

Gates = Callable[[int], Sequence[GatesOfTask]]


def each(make: Callable[[], GatesOfTask]) -> Gates:
    """Gates of its own for each task."""
    return lambda tasks: [make() for _ in range(tasks)]


def leased(rate: float) -> Gates:
    """Tasks that lease from one source."""
    return lambda tasks: leases(SimulatedSource(), rate, tasks)


def none(tasks: int) -> list[GatesOfTask]:
    """No gates."""
    return [None] * tasks
