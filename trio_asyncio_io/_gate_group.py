"""A group of gates: a call that asks one of them asks all."""

from __future__ import annotations

from collections.abc import Sequence

import trio

from ._gate_in_use import GateInUse
from ._line import Line

__all__ = ["GateGroup"]

# Instants that differ by less are equal. Otherwise rounding could yield a delay that is below the clock's resolution
SAME_INSTANT = 1e-9


class GateGroup:
    """Gates that must all admit a call.

    Attributes:
        in_use: None or more.
        line: The calls that wait for them.
    """

    def __init__(self) -> None:
        self.in_use: list[GateInUse] = []
        self.line = Line()

    @property
    def is_idle(self) -> bool:
        """Whether calls need not ask."""
        return all(each.gate.is_idle for each in self.in_use)

    def delay(self, weights: Sequence[float]) -> float:
        """The longest delay of all gates. Notes which gate it was.

        Raises:
            Exception: A gate's own, such as a `RefusedError`.
        """
        now = trio.current_time()
        longest, holder = 0.0, None
        for each, weight in zip(self.in_use, weights, strict=True):
            delay = each.delay(now, weight)
            if delay > max(longest, SAME_INSTANT):
                longest, holder = delay, each.gate
        if holder is not None:
            self.line.holders.change(type(holder).__name__, now)
        return longest
