"""The elements of a stream: records and watermarks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Never, TypeVar

__all__ = ["Element", "StreamRecord", "Watermark", "inserted_watermark", "is_inserted", "value_of", "with_value"]

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
