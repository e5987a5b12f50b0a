"""Row: one row of an Arrow batch on its way through the operator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from trio_asyncio_io import StreamRecord, Totals
from trio_asyncio_io.integration import TaskTimes, describe

from .._tracebacks import message_of, type_name

_CONTAINERS = frozenset({list, dict})


@dataclass(slots=True, eq=False)
class Failure:
    """Why a row has no result.

    Attributes:
        exception: The exception of the last attempt.
        attempts: The calls made.
        seconds: From the start of the first call to the end of the last.
    """

    exception: Exception
    attempts: int
    seconds: float

    def as_struct(self) -> dict[str, Any]:
        """The value of the row's column of errors."""
        return {
            "type": type_name(self.exception),
            "message": message_of(self.exception),
            "attempts": self.attempts,
            "seconds": self.seconds,
        }


@dataclass(slots=True, eq=False, repr=False)
class Row:
    """One row: its input, its position, and its result.

    Attributes:
        inputs: The values of the input columns, as Python values; None for null.
        batch: The number of its Arrow batch in this task, from 0.
        index: Its index in that batch.
        nbytes: The size of that batch in bytes, divided by its number of rows.
        shows_values: Whether errors and logs may show its values.
        event_time: Microseconds since the epoch; None for null, and without an event time column.
        key: The values of the key columns, in keyed mode.
        since: When the row's first micro-batch began, in milliseconds since the epoch; 0 without carry-over.
        attempts: The calls made so far, in earlier micro-batches too.
        started: The start of the first call, on Trio's clock; None before it, and where no column reports times.
        seconds: From `started` to the end of the last call that returned.
        result: The return value of the function.
        failure: Why the row has no result, or None.
        weights: What its calls weighed, estimated and settled; None where no column or no gate weighs them.
        cached: Whether the result came from a cache. False where no column reports it.
        replaced: Whether the result comes from `on_timeout`.
        call: With a memo, the `Call` that is made for it, in `_spark_thread.recorder`; else None.
        totals: With metrics, in the first row of some chunks: the totals and times of the task so far; else None.
    """

    inputs: tuple[Any, ...]
    batch: int
    index: int
    nbytes: int = 0
    shows_values: bool = True
    event_time: int | None = field(default=None, init=False)
    key: tuple[Any, ...] = field(default=(), init=False)
    since: int = field(default=0, init=False)
    attempts: int = field(default=0, init=False)
    started: float | None = field(default=None, init=False)
    seconds: float = field(default=0.0, init=False)
    result: Any = field(default=None, init=False)
    failure: Failure | None = field(default=None, init=False)
    weights: tuple[float, float] | None = field(default=None, init=False)
    cached: bool = field(default=False, init=False)
    replaced: bool = field(default=False, init=False)
    call: Any = field(default=None, init=False)
    totals: tuple[Totals, TaskTimes] | None = field(default=None, init=False)

    def __repr__(self) -> str:
        if not self.shows_values:
            return f"row {self.index} of Arrow batch {self.batch}"
        return f"row ({', '.join(map(describe, self.inputs))})"

    def fail(self, exception: Exception) -> None:
        """Take this exception, of the user's value or of its conversion, for the failure of the row."""
        self.failure = Failure(exception, self.attempts, self.seconds)

    def own_inputs(self) -> tuple[Any, ...]:
        """The values of the input columns for one call, which may change the lists and dicts among them."""
        has_containers = not _CONTAINERS.isdisjoint(map(type, self.inputs))
        return tuple(map(_copied, self.inputs)) if has_containers else self.inputs


def inputs_of(element: Row | StreamRecord[Row]) -> tuple[Any, ...]:
    """The input values of an element of the operator."""
    return (element.value if isinstance(element, StreamRecord) else element).inputs


def _copied(value: Any) -> Any:
    if type(value) is dict:
        return {key: _copied(each) for key, each in value.items()}
    if type(value) is list:
        return value.copy() if _CONTAINERS.isdisjoint(map(type, value)) else [_copied(each) for each in value]
    return value
