"""The dead letter: an element that failed for good, and what is known of that."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

__all__ = ["DeadLetter", "LostError"]


class LostError(Exception):
    """Stands in a restored snapshot for an exception that does not pickle; says what it was."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An element for which there is no result, with `on_error="dead_letter"`.

    Attributes:
        element: The `StreamRecord` or bare value that was accepted.
        error: The exception of its last attempt; an `ElementTimeoutError` if its deadline struck. In a pickle it is
            a `LostError` with the same words if it does not pickle itself.
        attempts: Calls made for it.
        seconds: From the start of its invocation to its failure, on Trio's clock.
    """

    element: Any
    error: Exception
    attempts: int
    seconds: float

    def __reduce__(self) -> Any:
        return DeadLetter, (self.element, _picklable(self.error), self.attempts, self.seconds)


def _picklable(error: Exception) -> Exception:
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - made a moment ago; many exceptions fail in the second half only
    except Exception:  # noqa: BLE001 - whatever a class's own pickling raises
        return LostError(f"{type(error).__name__}: {error}")
    return error
