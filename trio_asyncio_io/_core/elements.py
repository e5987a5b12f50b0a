"""The elements of a stream: records and watermarks, and watermarks computed from the timestamps of a source."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Never, TypeVar, overload

from .._values.checks import check_callback
from .._values.describe import describe

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R")


class Element(Generic[T_co]):
    """A record or a watermark. For type checkers: a list of both is a list of `Element[T]`."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class StreamRecord(Element[T_co]):
    """A value with its event time.

    The operator calls the function with the value, and emits the result as a `StreamRecord` with the same timestamp.
    The result of a bare value is a bare value.

    Args:
        value: The function's argument.
        timestamp: Event time, in any unit; the operator never reads it. None: the record has no event time.
    """

    value: T_co
    timestamp: Any = None


class _Inserted(Element[Never]):
    """Holds a flag that is not a dataclass field, so equality and pickles ignore it."""

    __slots__ = ("_is_inserted",)


@dataclass(frozen=True, slots=True)
class Watermark(_Inserted):
    """The promise that no later record is older than `timestamp` (Flink's `Watermark`).

    No record crosses a watermark, in any mode: the operator emits it after every record that arrived before it, and
    before every record that arrived after it.

    Args:
        timestamp: Event time, in the unit of the records' timestamps.
    """

    timestamp: Any


def inserted_watermark(timestamp: Any) -> Watermark:
    """A watermark that is not an element of the user's source, so `Snapshot.taken` does not count it."""
    watermark = Watermark(timestamp)
    object.__setattr__(watermark, "_is_inserted", True)
    return watermark


def is_inserted(element: object) -> bool:
    """Whether `inserted_watermark` made the element."""
    return isinstance(element, Watermark) and getattr(element, "_is_inserted", False)


def value_of(element: Any) -> Any:
    """The function's argument for this element."""
    return element.value if isinstance(element, StreamRecord) else element


def with_value(element: Any, value: Any) -> Any:
    """The output for this element if its result is `value`."""
    return StreamRecord(value, element.timestamp) if isinstance(element, StreamRecord) else value


class WatermarkClock:
    """Computes watermarks: the latest timestamp so far, minus a bound.

    Args:
        max_out_of_orderness: The bound, not negative: a number, a `timedelta`, or anything else that can be subtracted
            from a timestamp.
    """

    def __init__(self, max_out_of_orderness: Any) -> None:
        bound = max_out_of_orderness
        try:
            is_negative = bound < bound - bound
        except TypeError:
            raise TypeError(
                "max_out_of_orderness must be a number in the unit of the timestamps, such as seconds, or a timedelta, "
                f"got {describe(bound)}"
            ) from None
        if is_negative or _is_null(bound):
            raise ValueError(f"max_out_of_orderness must not be negative, got {bound!r}")
        self._bound = bound
        self._latest: Any = None
        self._last_watermark: Any = None

    def advance(self, timestamp: Any) -> Watermark | None:
        """The watermark to emit after a record with this timestamp, or None.

        The records before a watermark wait for each other. So the next one is due only after event time has advanced
        by another bound; within a segment, the unordered output stays free.
        """
        if _is_null(timestamp) or (self._latest is not None and not timestamp > self._latest):
            return None
        self._latest = timestamp
        watermark = timestamp - self._bound
        if self._last_watermark is not None and watermark < self._last_watermark + self._bound:
            return None
        self._last_watermark = watermark
        return inserted_watermark(watermark)

    def finish(self) -> Watermark | None:
        """The watermark to emit at the end of the source, or None."""
        if self._latest is None or self._latest - self._bound == self._last_watermark:
            return None
        self._last_watermark = self._latest - self._bound
        return inserted_watermark(self._last_watermark)


def _is_null(timestamp: Any) -> bool:
    """Whether this is None, NaN, or NaT or NA of pandas. All but None differ from themselves."""
    if timestamp is None:
        return True
    try:
        return bool(timestamp != timestamp)  # noqa: PLR0124
    except TypeError:  # pandas.NA
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
    """Turn values into records with timestamps, and insert watermarks between them.

    A watermark is `latest timestamp - max_out_of_orderness`. One follows the first record, one follows each record by
    which event time has advanced another `max_out_of_orderness` since the last watermark (with 0: advanced at all),
    and the final one follows the last record. This is Flink's `BoundedOutOfOrdernessWatermarks` in steps of event time
    instead of a timer, so every run emits the same watermarks. A record older than the watermark before it is late; it
    is passed on unchanged.

    Args:
        source: An iterable or async iterable of bare values. It is read lazily and never closed.
        timestamp: value -> event time. All timestamps have one type, which can be compared. None, NaN, NaT and NA mean
            that the record has no event time; such a record never causes a watermark.
        max_out_of_orderness: How much older than the latest record a record may be: a number in the unit of the
            timestamps, or a `timedelta` if they are `datetime`s; not negative.

    Returns:
        An iterator, or an async iterator if the source is async. `Snapshot.taken` does not count the watermarks.

    Raises:
        TypeError: `timestamp` is not callable or is async, or `max_out_of_orderness` is neither a number nor a
            `timedelta`.
        ValueError: It is negative or NaN.

    Example:
        >>> marked = assign_watermarks([3, 5, 4], timestamp=int, max_out_of_orderness=2)
        >>> list(marked)[:2]
        [StreamRecord(value=3, timestamp=3), Watermark(timestamp=1)]
    """
    check_callback("timestamp", timestamp)
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
