"""The samples: the durations of some records, as histograms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, cycle, repeat

from .histogram import Durations, Histogram
from .verdict import LoadClass

__all__ = ["Samples", "histograms_of", "loads_of", "sampling"]

# All records are counted at first, and then one in eleven, because that takes a twentieth of an element's time
EXACT_RECORDS = 500
STRIDE = 11  # a prime, because services and batches repeat after round numbers
FOLD = 500  # durations in a list, at most


class Samples:
    """The durations of some records.

    The load of an invocation is the number that ran when it started, or when it completed if that is higher. So
    invocations that start together, or remain at the end, count at the load that they shared. Classes of load are
    powers of two: class n has loads of n bits, and class 0 the invocations without a result, whose load is not known.

    Args:
        times: How many records each one represents.
        max_load: Upper limit of the load.

    Attributes:
        slot_wait, head_wait: The waits of the records.
        latency: By class of load, the durations of the invocations.
        max_load: As given.
    """

    __slots__ = ("head_wait", "latency", "max_load", "slot_wait")

    def __init__(self, times: int, max_load: int) -> None:
        self.slot_wait = Durations(times)
        self.head_wait = Durations(times)
        self.latency = [Durations(times) for _ in range(max_load.bit_length() + 1)]
        self.max_load = max_load

    def leave(self, head_wait: float) -> None:
        """A record has left the queue."""
        waits = self.head_wait
        waits.add(head_wait)
        if len(waits.unfolded) >= FOLD:
            for durations in (waits, self.slot_wait, *self.latency):
                durations.fold()


def sampling(max_load: int) -> tuple[tuple[Samples, ...], Iterator[Samples | None]]:
    """The samples of an operator; and, for each record in starting order, those that count it, or None."""
    exact, later = Samples(1, max_load), Samples(STRIDE, max_load)
    skipped = [None] * (STRIDE // 2)
    return (exact, later), chain(repeat(exact, EXACT_RECORDS), cycle((*skipped, later, *skipped)))


def histograms_of(samples: Sequence[Samples]) -> dict[str, Histogram]:
    """The histograms, by their names in `Statistics`."""
    return {
        "latency": _sum(durations for each in samples for durations in each.latency),
        "slot_wait": _sum(each.slot_wait for each in samples),
        "head_wait": _sum(each.head_wait for each in samples),
    }


def loads_of(samples: Sequence[Samples]) -> tuple[LoadClass, ...]:
    """The latency of each class of load that has invocations."""
    max_load = samples[0].max_load
    classes = [_sum(each.latency[bits] for each in samples) for bits in range(max_load.bit_length() + 1)]
    return tuple(
        LoadClass(max_load if bits == max_load.bit_length() else 3 << bits >> 2, each.count, each.p50)
        for bits, each in enumerate(classes)
        if bits and each.count
    )


def _sum(parts: Iterable[Durations]) -> Histogram:
    return sum((durations.histogram() for durations in parts), Histogram())
