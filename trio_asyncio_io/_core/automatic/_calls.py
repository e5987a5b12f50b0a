"""The calls that run, those that were admitted, and their latency."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator
from math import inf

from ._constants import CLIPPED, FEW, FEW_CALLS, FIRST_CALLS, PART, ROUNDING, SPAN

__all__ = ["Admitted", "Latency", "Running"]


class Running:
    """The calls that run, by start, and their ranks: how many ran in the service when each started.

    A call is known to be admitted some time after its start, because the refusals of earlier calls lower its rank.
    """

    __slots__ = ("_recent", "ranks", "starts")

    def __init__(self) -> None:
        self.starts: list[float] = []
        self.ranks: list[int] = []
        self._recent: deque[list[float]] = deque()  # [start, rank] of all calls that are not yet known to be admitted

    def __len__(self) -> int:
        return len(self.starts)

    def add(self, now: float) -> None:
        rank = len(self.starts)
        self.starts.append(now)
        self.ranks.append(rank)
        self._recent.append([now, rank])

    def remove(self, start: float) -> None:
        """A call that started at this instant has ended, and was not refused."""
        self._pop(bisect_left(self.starts, start - ROUNDING))

    def refuse(self, start: float) -> int:
        """A call that started at this instant was refused. Returns its rank, the highest of those with this start."""
        position = bisect_right(self.starts, start + ROUNDING) - 1
        for later in range(position + 1, len(self.ranks)):
            self.ranks[later] -= 1
        for recent in reversed(self._recent):
            if recent[0] > start + ROUNDING:
                recent[1] -= recent[1] >= 0
            elif recent[1] >= 0:
                recent[1] = -1
                break
        return self._pop(position)

    def _pop(self, position: int) -> int:
        position = min(max(position, 0), len(self.starts) - 1)
        del self.starts[position]
        return self.ranks.pop(position)

    def known(self, until: float) -> Iterator[tuple[float, int]]:
        """The start and the rank of each call that started until then, once. -1: it was refused."""
        recent = self._recent
        while recent and recent[0][0] <= until:
            start, rank = recent.popleft()
            yield start, int(rank)

    def has_survivor(self, since: float, until: float) -> bool:
        """Whether a call runs that started after `since` and before `until`."""
        first = bisect_right(self.starts, since)
        return first < len(self.starts) and self.starts[first] < until


class Admitted:
    """Counts the calls that were not refused, and their rate of the last second or the last calls."""

    def __init__(self) -> None:
        self.started = self.refused = 0
        self._marks: deque[tuple[float, int]] = deque()

    @property
    def calls(self) -> int:
        return self.started - self.refused

    def start(self, now: float) -> None:
        if not self._marks:
            self._marks.append((now, 0))
        self.started += 1
        if now >= self._marks[-1][0] + 0.1 * SPAN:
            self._marks.append((now, self.calls))
            while self._is_beyond(now):
                self._marks.popleft()

    def _is_beyond(self, now: float) -> bool:
        marks = self._marks
        return len(marks) > 2 and marks[1][0] <= now - SPAN and marks[-1][1] - marks[1][1] >= 2 * FEW  # noqa: PLR2004

    def rate(self, now: float) -> float:
        since, calls = self._marks[0]
        return max(1.0, self.calls - calls) / max(SPAN, now - since)


class Latency:
    """The latency of the first calls, and the recent one."""

    def __init__(self) -> None:
        self.first: float | None = None
        self.recent = 0.0
        self._sum, self._answers = 0.0, 0
        self._until = inf  # the start of the last of the first calls

    def close(self, now: float) -> None:
        """The last of the first calls starts."""
        self._until = now

    def add(self, now: float, start: float, running: Running) -> None:
        if self.first is None and start <= self._until:
            self._sum += now - start
            self._answers += 1
            self._estimate(now, running)
        if self.first:
            self.recent += (min(now - start, CLIPPED * self.first) - self.recent) / max(FEW_CALLS, len(running) / PART)

    def _estimate(self, now: float, running: Running) -> None:
        """Short answers come first, so the time of calls that still run counts as well."""
        if self._until == inf or self._answers < FIRST_CALLS // 2:
            return
        rest = running.starts[: bisect_right(running.starts, self._until)]
        if len(rest) <= FIRST_CALLS // 4:
            self.first = self.recent = (self._sum + sum(now - start for start in rest)) / self._answers

    def is_above(self, factor: float) -> bool:
        return bool(self.first) and self.recent > factor * (self.first or 0.0)
