"""Sums by name, such as the seconds of each gate."""

from __future__ import annotations

from collections.abc import Callable, Mapping

__all__ = ["combined"]


def combined(
    operation: Callable[[float, float], float], first: Mapping[str, float], second: Mapping[str, float]
) -> dict[str, float]:
    """The operation applied to the numbers of each name. A missing name counts as 0.0."""
    names = dict.fromkeys([*first, *second])
    return {name: operation(first.get(name, 0.0), second.get(name, 0.0)) for name in names}
