"""An element that failed for good, with its error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .portable import LostError, chain_of, chained

__all__ = ["DeadLetter", "LostError"]


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An element without a result, and its error; sent with `on_error="dead_letter"`.

    It always pickles, if its element does. The pickle keeps the error's notes and causes, but no tracebacks. An error
    that cannot be pickled is replaced by a `LostError` with the same type name and message.

    Attributes:
        element: The `StreamRecord` or bare value that was accepted.
        error: The exception of its last attempt; an `ElementTimeoutError` if its deadline expired.
        attempts: The number of calls made for it.
        seconds: From the start of its invocation to its failure, on Trio's clock.
    """

    element: Any
    error: Exception
    attempts: int
    seconds: float

    def __copy__(self) -> DeadLetter:
        return self  # `__reduce__` would replace the error

    def __reduce__(self) -> Any:
        return _restored, (self.element, chain_of(self.error), self.attempts, self.seconds)


def _restored(element: Any, chain: list[Any], attempts: int, seconds: float) -> DeadLetter:
    return DeadLetter(element, chained(chain), attempts, seconds)
