"""The lifetime: for how long an answer is good."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .._core.checks import check_callable, check_seconds

__all__ = ["Lifetime", "is_none"]


def is_none(result: Any) -> bool:
    """Whether the result is None, which in most lookups means that there is none."""
    return result is None


@dataclass(frozen=True, slots=True)
class Lifetime:
    """How many seconds a result is good, and how many a negative one.

    Args:
        ttl: Seconds, above 0; `math.inf`: for ever.
        negative_ttl: Seconds, at least 0, for negative results; 0: they are not kept. None: `ttl`.
        is_negative: result -> whether it is a negative one.

    Raises:
        TypeError, ValueError: An argument is out of its range; the message names it and its value.
    """

    ttl: float
    negative_ttl: float | None
    is_negative: Callable[[Any], bool]

    def __post_init__(self) -> None:
        check_seconds("ttl", self.ttl, positive=True)
        if self.negative_ttl is not None:
            check_seconds("negative_ttl", self.negative_ttl)
        check_callable("is_negative", self.is_negative)

    @property
    def of_negative(self) -> float:
        """Seconds for which a negative result is good."""
        return self.ttl if self.negative_ttl is None else self.negative_ttl

    def of(self, result: Any) -> float:
        """Seconds for which this result is good."""
        if self.negative_ttl is None or not self.is_negative(result):
            return self.ttl
        return self.negative_ttl
