"""Watermarks: how far event time has come, told from the timestamps themselves."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from typing import Any, TypeVar, overload

from .elements import StreamRecord, Watermark, inserted_watermark

__all__ = ["WatermarkClock", "assign_watermarks"]

T = TypeVar("T")


class WatermarkClock:
    """Bounded out-of-orderness: no record is expected later than the latest one less a bound.

    Args:
        max_out_of_orderness: How much older than the latest record a record may still be; not negative.
            Anything that can be subtracted from a timestamp: a number, a `timedelta`.
    """

    def __init__(self, max_out_of_orderness: Any) -> None:
        bound = max_out_of_orderness
        if bound < bound - bound or _is_null(bound):
            raise ValueError(f"max_out_of_orderness must not be negative, got {bound!r}")
        self._bound = bound
        self._latest: Any = None
        self._told: Any = None

    def advance(self, timestamp: Any) -> Watermark | None:
        """The watermark to send after a record with this timestamp, if time has come far enough for one.

        A watermark is a wall that makes the records before it wait for each other, so one is sent only when
        time has moved on by another bound since the last: the unordered output stays free in between.
        """
        if _is_null(timestamp) or (self._latest is not None and not timestamp > self._latest):
            return None
        self._latest = timestamp
        reached = timestamp - self._bound
        if self._told is not None and reached < self._told + self._bound:
            return None
        self._told = reached
        return inserted_watermark(reached)

    def finish(self) -> Watermark | None:
        """The watermark that the last record still deserves, at the end of the source."""
        if self._latest is None or self._latest - self._bound == self._told:
            return None
        self._told = self._latest - self._bound
        return inserted_watermark(self._told)


def _is_null(timestamp: Any) -> bool:
    """Whether this is None, NaN, or NaT or NA of pandas: except None, they are not equal to themselves."""
    if timestamp is None:
        return True
    try:
        return bool(timestamp != timestamp)  # noqa: PLR0124
    except TypeError:  # of NA
        return True


@overload
def assign_watermarks(
    source: Iterable[T], *, timestamp: Callable[[T], Any], max_out_of_orderness: Any
) -> Iterator[StreamRecord[T] | Watermark]: ...
@overload
def assign_watermarks(
    source: AsyncIterable[T], *, timestamp: Callable[[T], Any], max_out_of_orderness: Any
) -> AsyncIterator[StreamRecord[T] | Watermark]: ...
def assign_watermarks(
    source: Iterable[T] | AsyncIterable[T], *, timestamp: Callable[[T], Any], max_out_of_orderness: Any
) -> Iterator[StreamRecord[T] | Watermark] | AsyncIterator[StreamRecord[T] | Watermark]:
    """The source's values as records with their timestamps, and watermarks between them.

    After a record, the watermark `latest timestamp - max_out_of_orderness` follows whenever event time has
    come another `max_out_of_orderness` further (with 0: whenever it has moved at all), and the last one
    at the end of the source (Flink's `BoundedOutOfOrdernessWatermarks`, in steps of event time instead of
    a timer's, so that it is the same in every run). A record older than the watermark before it is late:
    it is passed on as it is.

    Args:
        source: An iterable or an async iterable of bare values. It is read lazily and never closed.
        timestamp: value -> event time, of any one type that can be compared; None says that the record has
            none, as do NaN, NaT and NA, and it moves no watermark.
        max_out_of_orderness: How much older than the latest record a record may still be, in the
            timestamps' unit or as what one subtracts from them (a `timedelta` for a `datetime`); not negative.

    Returns:
        An iterator, or an async iterator if the source is one. `Snapshot.taken` does not count its watermarks.

    Raises:
        ValueError: `max_out_of_orderness` is negative or NaN.

    Example:
        >>> list(assign_watermarks([3, 5, 4], timestamp=lambda value: value, max_out_of_orderness=2))[:2]
        [StreamRecord(value=3, timestamp=3), Watermark(timestamp=1)]
    """
    clock = WatermarkClock(max_out_of_orderness)
    if isinstance(source, AsyncIterable):
        return _assign_async(source, timestamp, clock)
    return _assign(source, timestamp, clock)


def _assign(source: Iterable[T], timestamp: Callable[[T], Any], clock: WatermarkClock) -> Iterator[Any]:
    for value in source:
        record = StreamRecord(value, timestamp(value))
        yield record
        if watermark := clock.advance(record.timestamp):
            yield watermark
    if watermark := clock.finish():
        yield watermark


async def _assign_async(
    source: AsyncIterable[T], timestamp: Callable[[T], Any], clock: WatermarkClock
) -> AsyncIterator[Any]:
    async for value in source:
        record = StreamRecord(value, timestamp(value))
        yield record
        if watermark := clock.advance(record.timestamp):
            yield watermark
    if watermark := clock.finish():
        yield watermark
