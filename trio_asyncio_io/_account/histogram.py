"""The histogram: how many durations lie in each of a fixed set of logarithmic buckets."""

from __future__ import annotations

import sys
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import ceil
from struct import pack, unpack

from .._values.checks import check_number, check_seconds
from .._values.describe import duration, plural

# The upper 16 bits of a 64-bit float are its sign, its exponent and 4 bits of its mantissa. Their number is the bucket,
# so a power of two is divided into 16 buckets
_UPPER_BITS = slice(3 if sys.byteorder == "little" else 0, None, 4)


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of durations in logarithmic buckets, as in HdrHistogram.

    Each power of two is divided into 16 buckets of equal width, whatever the unit, so a quantile differs by at most
    3.2 % from a duration that was counted. 0.0 has a bucket of its own. The buckets are the same in each process, so
    histograms can be added and subtracted.

    Args:
        counts: (bucket, count) of each bucket that is not empty, in ascending order. The number of a bucket is the
            upper 16 bits of its durations, which are seconds as 64-bit floats. A list of lists, as JSON has it, is
            accepted.

    Example:
        >>> histogram = Histogram.of([0.1] * 98 + [2.0, 3.0])
        >>> histogram.count, round(histogram.p50, 2), round(histogram.p99, 1)
        (100, 0.1, 2.1)
        >>> (histogram + Histogram.of([0.0])).count
        101
    """

    counts: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", tuple((bucket, count) for bucket, count in self.counts))

    def __repr__(self) -> str:
        durations = f"{plural(self.count, 'duration')}, p50 {duration(self.p50)}, p99 {duration(self.p99)}"
        return f"Histogram({durations if self.count else ''})"

    @classmethod
    def of(cls, durations: Iterable[float]) -> Histogram:
        """The histogram of durations, in seconds, at least 0 and finite.

        Raises:
            TypeError, ValueError: One of them is not such a number.
        """
        recorded = Durations()
        for seconds in durations:
            recorded.add(abs(check_seconds("a duration", seconds, finite=True)))  # -0.0 has another bucket than 0.0
        return recorded.histogram()

    @property
    def count(self) -> int:
        """The number of durations."""
        return sum(count for _, count in self.counts)

    @property
    def p50(self) -> float:
        """The median, in seconds: half of the durations are at most this long. 0.0 if there are none."""
        return self.quantile(0.5)

    @property
    def p95(self) -> float:
        """The 95th percentile, in seconds. 0.0 if there are no durations."""
        return self.quantile(0.95)

    @property
    def p99(self) -> float:
        """The 99th percentile, in seconds. 0.0 if there are no durations."""
        return self.quantile(0.99)

    def quantile(self, share: float) -> float:
        """A duration, in seconds, that is not exceeded by this share of the durations. 0.0 if there are none.

        Args:
            share: From 0.0 (the shortest) to 1.0 (the longest).

        Raises:
            TypeError, ValueError: `share` is not a number from 0.0 to 1.0.
        """
        check_number("share", share, "from 0.0 to 1.0", lambda number: 0 <= number <= 1)
        rank = max(1, ceil(share * self.count))
        totals = accumulate(count for _, count in self.counts)
        reached = (bucket for (bucket, _), total in zip(self.counts, totals, strict=True) if total >= rank)
        return _middle(next(reached, 0))

    def buckets(self) -> list[tuple[float, int]]:
        """(the middle of a bucket, in seconds, its count) of each bucket that is not empty, in ascending order."""
        return [(_middle(bucket), count) for bucket, count in self.counts]

    def scaled(self, count: int) -> Histogram:
        """The histogram of this number of durations, with the same distribution."""
        if count == self.count or not self.count:
            return self
        sums = [round(total * count / self.count) for total in accumulate(each for _, each in self.counts)]
        parts = [total - before for before, total in pairwise([0, *sums])]
        return Histogram(tuple((bucket, part) for (bucket, _), part in zip(self.counts, parts, strict=True) if part))

    def __add__(self, other: Histogram) -> Histogram:
        """The histogram of the durations of both."""
        return _histogram(Counter(dict(self.counts)) + Counter(dict(other.counts)))

    def __sub__(self, earlier: Histogram) -> Histogram:
        """The histogram of the durations since an earlier histogram."""
        return _histogram(Counter(dict(self.counts)) - Counter(dict(earlier.counts)))


class Durations:
    """Durations that become a histogram.

    `add` only appends to a list, and `fold` counts all durations of the list in C. That takes a third of the time of
    computing the bucket of each duration in Python.

    Args:
        times: The number of durations that each duration represents.

    Attributes:
        add: Records a duration, in seconds, at least 0. It is the `append` of a list.
        unfolded: That list. Call `fold` before it becomes long.
    """

    __slots__ = ("_counts", "_seconds", "_times", "add", "unfolded")

    def __init__(self, times: int = 1) -> None:
        self.unfolded: list[float] = []
        self.add: Callable[[float], None] = self.unfolded.append
        self._times = times
        self._counts: Counter[int] = Counter()
        self._seconds = 0.0

    def fold(self) -> None:
        """Count the durations of the list, and clear it."""
        self._counts.update(array("H", pack(f"{len(self.unfolded)}d", *self.unfolded))[_UPPER_BITS])
        self._seconds += sum(self.unfolded)
        self.unfolded.clear()

    def sums(self) -> tuple[int, float]:
        """The number of all durations, and their sum."""
        self.fold()
        return self._times * self._counts.total(), self._times * self._seconds

    def histogram(self) -> Histogram:
        """The histogram of all durations."""
        self.fold()
        return _histogram({bucket: self._times * count for bucket, count in self._counts.items()})


def _histogram(counts: Mapping[int, int]) -> Histogram:
    return Histogram(tuple(sorted(counts.items())))


def _middle(bucket: int) -> float:
    """The middle of a bucket; 0.0 for the bucket of 0.0."""
    lower, upper = unpack(">2d", pack(">2Q", bucket << 48, (bucket + 1) << 48))
    return (lower + upper) / 2 if bucket else 0.0
