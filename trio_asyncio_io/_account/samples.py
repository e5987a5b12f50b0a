"""The samples: the durations of some records, as histograms and by the load."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass
from typing import Any

from .histogram import Durations, Histogram

# All records count at first, so that short runs are exact. Then every nineteenth does, because counting takes a
# twentieth of an element's time
EXACT_RECORDS = 500
STRIDE = 19  # a prime, because services and batches repeat after round numbers
FOLD = 500  # durations in a list, at most


class Samples:
    """The durations of some records.

    The load of an invocation is the number that ran when it started, or when it completed if that is higher. So
    invocations that start together, or remain at the end, count at the load that they shared. Classes of load are
    powers of two: class n has loads of n bits, and class 0 the invocations without a result, whose load is not known.

    Args:
        times: The number of records that each record represents, at least 1.
        max_load: Upper limit of the load.

    Attributes:
        slot_wait, head_wait: The waits of the records.
        latency: class of load -> the durations of the invocations.
        max_load: As given.
        without_load: The same samples, except that durations count in no class of load: for answers from a cache.
    """

    __slots__ = ("head_wait", "latency", "max_load", "slot_wait", "without_load")

    def __init__(self, times: int, max_load: int) -> None:
        self.slot_wait = Durations(times)
        self.head_wait = Durations(times)
        self.latency = [Durations(times) for _ in range(max_load.bit_length() + 1)]
        self.max_load = max_load
        self.without_load = copy(self)
        self.without_load.latency = [self.latency[0]] * len(self.latency)
        self.without_load.without_load = self.without_load  # a call may have several answers from caches

    def leave(self, head_wait: float) -> None:
        """A record has left the queue."""
        waits = self.head_wait
        waits.add(head_wait)
        if len(waits.unfolded) >= FOLD:
            for durations in (waits, self.slot_wait, *self.latency):
                durations.fold()


@dataclass(frozen=True, slots=True)
class LoadClass:
    """The latency at one load.

    Args:
        running: About the number of invocations that ran at once.
        calls: The number of invocations that completed at this load.
        latency: The median of their durations, in seconds.
    """

    running: int
    calls: int
    latency: float


class Sampling:
    """Chooses the records whose durations count.

    Args:
        max_load: Upper limit of the load.

    Attributes:
        exact, later: The samples of the first records, and of those after them.
        countdown: Counted down at the start of each record: 0 at one that counts.
    """

    __slots__ = ("_exact_left", "countdown", "exact", "later")

    def __init__(self, max_load: int) -> None:
        self.exact = Samples(1, max_load)
        self.later = Samples(STRIDE, max_load)
        self._exact_left = EXACT_RECORDS
        self.countdown = 1

    def choose(self) -> Samples:
        """The samples for this record. Sets the countdown to the next record that counts."""
        if not self._exact_left:
            self.countdown = STRIDE
            return self.later
        self._exact_left -= 1
        self.countdown = 1 if self._exact_left else STRIDE // 2 + 1
        return self.exact

    def histograms(self, calls: int) -> dict[str, Any]:
        """The histograms, by their names in `Statistics`. The histogram of the latency has this number of durations."""
        samples = (self.exact, self.later)
        exact, later = (_sum(each.latency) for each in samples)
        return {
            "latency": exact + later.scaled(calls - exact.count) if later.count else exact.scaled(calls),
            "slot_wait": _sum(each.slot_wait for each in samples),
            "head_wait": _sum(each.head_wait for each in samples),
        }

    def loads(self) -> tuple[LoadClass, ...]:
        """The latency of each class of load that has invocations."""
        samples = (self.exact, self.later)
        max_load = self.exact.max_load
        classes = [_sum(each.latency[bits] for each in samples) for bits in range(max_load.bit_length() + 1)]
        return tuple(
            LoadClass(max_load if bits == max_load.bit_length() else 3 << bits >> 2, each.count, each.p50)
            for bits, each in enumerate(classes)
            if bits and each.count
        )

    def extreme_loads(self) -> dict[str, Any]:
        """The calls in the classes of low and of high loads, and their durations, by the names in `Totals`."""
        max_load = self.exact.max_load
        low = high = (0, 0.0)
        for each in (self.exact, self.later):
            for bits, durations in enumerate(each.latency[1:], 1):
                if 4 * ((1 << bits) - 1) <= max_load:
                    low = _added(low, durations)
                elif 1 << bits >= max_load:
                    high = _added(high, durations)
        names = ("low_calls", "low_latency_seconds", "high_calls", "high_latency_seconds")
        return dict(zip(names, (*low, *high), strict=True))


def _added(sums: tuple[int, float], durations: Durations) -> tuple[int, float]:
    calls, seconds = durations.sums()
    return sums[0] + calls, sums[1] + seconds


def _sum(parts: Iterable[Durations]) -> Histogram:
    return sum((durations.histogram() for durations in parts), Histogram())
