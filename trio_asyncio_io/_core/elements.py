"""Elements: what flows through the operator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Never, TypeVar

from .describe import describe

__all__ = [
    "Element",
    "StreamRecord",
    "Watermark",
    "describe",
    "inserted_watermark",
    "is_inserted",
    "value_of",
    "with_value",
]

T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R")


class Element(Generic[T_co]):
    """A record or a watermark. For type checkers: a list of both is a list of `Element[T]`."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class StreamRecord(Element[T_co]):
    """A value with the time at which it happened.

    What goes in comes out: the result of a `StreamRecord` comes out as a `StreamRecord` with its
    input's timestamp. A bare value needs none of this and comes out bare.

    Args:
        value: What the function is called with.
        timestamp: Event time, in whatever unit the source uses (the operator never looks at it); None
            where there is none.
    """

    value: T_co
    timestamp: Any = None


class _Inserted(Element[Never]):
    """Whether a watermark was inserted between the elements of a source. No field: equality and pickles ignore it."""

    __slots__ = ("_is_inserted",)


@dataclass(frozen=True, slots=True)
class Watermark(_Inserted):
    """The promise that no later record is older than `timestamp`.

    No record ever crosses a watermark, in any mode: it comes out after every record that went in before
    it and before every record that went in after it (Flink's `Watermark`).

    Args:
        timestamp: Event time, in the unit of the records' timestamps.
    """

    timestamp: Any


def inserted_watermark(timestamp: Any) -> Watermark:
    """A watermark that is no element of the user's source: `Snapshot.taken` does not count it."""
    watermark = Watermark(timestamp)
    object.__setattr__(watermark, "_is_inserted", True)
    return watermark


def is_inserted(element: object) -> bool:
    """Whether the element was made by `inserted_watermark`."""
    return isinstance(element, Watermark) and getattr(element, "_is_inserted", False)


def value_of(element: Any) -> Any:
    """What the function is called with for this element."""
    return element.value if isinstance(element, StreamRecord) else element


def with_value(element: Any, value: Any) -> Any:
    """What comes out for this element when its result is `value`."""
    return StreamRecord(value, element.timestamp) if isinstance(element, StreamRecord) else value
