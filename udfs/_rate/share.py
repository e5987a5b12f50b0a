"""A task's share of a cluster's rate."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from trio_asyncio_io.gates import RateLimit

__all__ = ["ClusterShare"]

# In less than a second, fewer than burst + rate calls start. So 1 % of a second is left for calls that take different
# times to reach the service
RATE = 0.98  # of the share
LATENESS = 0.01  # seconds by which a call may start late without delaying the next ones


class ClusterShare(RateLimit):
    """Starts at most `calls` calls in any second, and none at once: a task begins with an empty bucket.

    So all tasks that run at once stay below the cluster's rate, also when one task follows another.

    Args:
        calls: Calls per second, at least 1.
    """

    def __init__(self, calls: int) -> None:
        super().__init__(RATE * calls, burst=1 + LATENESS * calls)
        self.calls = calls
        self._is_new = True

    def delay(self, now: float, weight: float) -> float:
        """The seconds until the bucket holds a call."""
        if self._is_new:
            self._is_new = False
            self.started(now, self.burst)
        return super().delay(now, weight)

    def __reduce__(self) -> tuple[Callable[..., ClusterShare], tuple[()]]:
        return partial(ClusterShare, self.calls), ()
