"""The budget: how long Spark's thread waits for results, and how many it may leave behind."""

from __future__ import annotations

import math
import time

__all__ = ["Budget"]


class Budget:
    """Seconds from now on to wait for results, and the most rows that may be unfinished after them.

    Args:
        seconds: At least 0; `math.inf`, the default: to the end.
        most: Rows.
    """

    def __init__(self, seconds: float = math.inf, most: int = 0) -> None:
        self._end = time.monotonic() + seconds
        self.most = most

    def remaining(self) -> float | None:
        """Seconds that are left, 0.0 if none; None if there is no end."""
        return None if self._end == math.inf else max(0.0, self._end - time.monotonic())
