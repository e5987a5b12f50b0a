"""The deadlines of the running calls. Plain data, without a clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import takewhile
from math import inf
from typing import Any

from .queue import Entry


@dataclass(eq=False)
class RunningCalls:
    """The running calls by deadline: `entry.since + timeout`.

    Invariant: all timeouts are equal, so first attempts expire in the order in which they started. A dictionary has
    that order, which makes it a priority queue that costs a dictionary entry. The deadlines of retries are in a heap,
    which holds no record, and about as many deadlines as records run.

    Args:
        timeout: Seconds, the same for all records. With `math.inf` no deadline expires.

    Attributes:
        scopes: running call -> its worker's cancel scope, opaque here. First attempts are in the order of their starts.
    """

    timeout: float
    scopes: dict[Entry, Any] = field(default_factory=dict, init=False)
    _retries: list[float] = field(default_factory=list, init=False)  # a heap of deadlines; some calls have ended

    def set_retry(self, entry: Entry, scope: Any) -> float:
        """The time of a record runs again. Returns its deadline."""
        deadline = entry.since + self.timeout
        self.scopes[entry] = scope
        heappush(self._retries, deadline)
        if len(self._retries) > 2 * len(self.scopes):
            self._retries = [each.since + self.timeout for each in self.scopes]
            heapify(self._retries)
        return deadline

    def first(self) -> float:
        """The first deadline, or `math.inf`. It may belong to a record that has ended, but is never too late."""
        first = next((entry.since for entry in self.scopes if entry.attempts <= 1), inf) + self.timeout
        return min(first, self._retries[0]) if self._retries else first

    def expire(self, now: float) -> list[Any]:
        """Remove the calls whose deadlines have expired. Returns their scopes, in the order of their starts."""

        def has_expired(entry: Entry) -> bool:
            return entry.since + self.timeout <= now

        if self._retries and self._retries[0] <= now:
            while self._retries and self._retries[0] <= now:
                heappop(self._retries)
            expired = list(filter(has_expired, self.scopes))
        else:
            expired = list(takewhile(has_expired, (entry for entry in self.scopes if entry.attempts <= 1)))
        return [self.scopes.pop(entry) for entry in expired]
