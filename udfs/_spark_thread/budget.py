"""A time budget for results, and the limit of rows that may remain unfinished after it."""

from __future__ import annotations

import math
import time

__all__ = ["Budget"]


class Budget:
    """How long a task waits for its results, starting now.

    Args:
        seconds: At least 0. `math.inf`, the default, means until all rows are finished.
        max_unfinished: The upper limit of rows that may remain unfinished after that time. While more are unfinished,
            the task continues to wait.
    """

    def __init__(self, seconds: float = math.inf, max_unfinished: int = 0) -> None:
        self._end = time.monotonic() + seconds
        self.max_unfinished = max_unfinished

    def remaining(self) -> float | None:
        """The remaining seconds, at least 0.0, or None if there is no limit."""
        return None if self._end == math.inf else max(0.0, self._end - time.monotonic())
