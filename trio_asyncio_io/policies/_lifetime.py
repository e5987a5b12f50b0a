"""The lifetime of cached results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .._core.checks import check_callable, check_seconds

__all__ = ["Lifetime", "is_none"]


def is_none(result: Any) -> bool:
    """Whether the result is None, by which most lookups report a missing value."""
    return result is None


@dataclass(frozen=True, slots=True)
class Lifetime:
    """For how many seconds a result is valid.

    Args:
        ttl: Seconds, above 0; `math.inf` forever.
        negative_ttl: Seconds for negative results, at least 0; 0: they are not cached. None: the same as `ttl`.
        is_negative: result -> whether it is negative.

    Raises:
        TypeError, ValueError: An argument is out of its range.
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
    def negative_seconds(self) -> float:
        """Seconds for which a negative result is valid."""
        return self.ttl if self.negative_ttl is None else self.negative_ttl

    def seconds_for(self, result: Any) -> float:
        """Seconds for which this result is valid."""
        if self.negative_ttl is None or not self.is_negative(result):
            return self.ttl
        return self.negative_ttl
