"""The carry-over: how long a micro-batch waits for its calls, and what becomes of those that it does not wait for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import index
from typing import Any

__all__ = ["CarriedTooLongError", "CarryOver"]


class CarriedTooLongError(TimeoutError):
    """A row was carried from micro-batch to micro-batch until it was older than `max_age`; it is not called again."""

    __module__ = "udfs"


@dataclass(frozen=True, slots=True)
class CarryOver:
    """A time budget for each micro-batch: calls that are not done by then are cancelled and made again in a later one.

    Flink's asynchronous operator writes what is in flight into the checkpoint and waits for none of it. Here it goes
    into Spark's state store, in the transaction of the micro-batch.

    Args:
        budget: Seconds that a task gives its calls in a micro-batch, above 0. A call that takes longer than that
            each time it is made never ends, and its row becomes too old.
        most: Most rows that a bucket carries, 0 or more. While there are more unfinished rows than these, the task
            works on beyond the budget: that is the backpressure. 0: every micro-batch waits for all of its calls.
        max_age: Seconds after which a row is not called again, not below `budget`, `math.inf` for never. They count
            from the micro-batch that brought the row. Such a row has failed with a `CarriedTooLongError`, and goes
            where `on_error` says.

    Raises:
        TypeError, ValueError: An argument is out of its range; the message names it and its value.

    Example:
        unordered_wait(stream, weather, "temp double", timeout=60.0, carry_over=CarryOver(budget=5.0))
    """

    __module__ = "udfs"

    budget: float = 5.0
    most: int = 10_000
    max_age: float = 600.0

    def __post_init__(self) -> None:
        _check_seconds("budget", self.budget)
        if not 0 < self.budget < math.inf:
            raise ValueError(f"budget must be a finite number of seconds above 0, got {self.budget!r}")
        if _whole(self.most) < 0:
            raise ValueError(f"most must be at least 0, got {self.most!r}")
        _check_seconds("max_age", self.max_age)
        if not self.max_age >= self.budget:
            raise ValueError(f"max_age must not be below the budget, {self.budget!r} s, got {self.max_age!r}")


def _check_seconds(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number of seconds, got {value!r}")


def _whole(most: Any) -> int:
    try:
        if not isinstance(most, bool):
            return index(most)
    except TypeError:
        pass
    raise TypeError(f"most must be a whole number of rows, got {most!r}")
