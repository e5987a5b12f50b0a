"""The dead letter: an element that failed for good, and what is known of that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .portable import LostError, chain_of, chained

__all__ = ["DeadLetter", "LostError"]


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An element for which there is no result, with `on_error="dead_letter"`.

    Attributes:
        element: The `StreamRecord` or bare value that was accepted.
        error: The exception of its last attempt; an `ElementTimeoutError` if its deadline struck. In a pickle it is
            a `LostError` with the same words if it does not pickle itself. Its notes and causes are in the pickle, too;
            tracebacks are not.
        attempts: Calls made for it.
        seconds: From the start of its invocation to its failure, on Trio's clock.
    """

    element: Any
    error: Exception
    attempts: int
    seconds: float

    def __copy__(self) -> DeadLetter:
        return self  # not by `__reduce__`: the error stays itself

    def __reduce__(self) -> Any:
        return _restored, (self.element, chain_of(self.error), self.attempts, self.seconds)


def _restored(element: Any, chain: list[Any], attempts: int, seconds: float) -> DeadLetter:
    return DeadLetter(element, chained(chain), attempts, seconds)
