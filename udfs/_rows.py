"""The rows: what goes through the operator for each row of an Arrow batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["Failure", "Row", "SecretRow", "put_event_times", "put_keys", "rows_of", "shown"]


_NAN = object()


class Failure:
    """What happened to a row that has no result.

    Attributes:
        exception: What was raised.
        attempts: Calls made.
        seconds: From the start of the first call to the end of the last.
    """

    __slots__ = ("attempts", "exception", "seconds")

    def __init__(self, exception: Exception, attempts: int, seconds: float) -> None:
        self.exception = exception
        self.attempts = attempts
        self.seconds = seconds

    def as_struct(self) -> dict[str, Any]:
        """The row's `error` column."""
        return {
            "type": type(self.exception).__name__,
            "message": str(self.exception),
            "attempts": self.attempts,
            "seconds": self.seconds,
        }


class Row:
    """One row: what the function is called with, where the row stands, and what came of it.

    Attributes:
        inputs: The values of the input columns, as Python values; None for null.
        batch: The number of its Arrow batch in this task.
        index: Its place in that batch.
        event_time: Microseconds since the epoch, None for null or where there is no event time.
        key: The values of the key columns, in keyed mode.
        since: When the row's first micro-batch began, in milliseconds since the epoch; 0 where nothing is carried over.
        attempts: Calls made so far, in earlier micro-batches too.
        started: When the first call began, on Trio's clock, in seconds; None before it, and unless it will
            be told.
        seconds: From there to the end of the last call that gave a result.
        result: What the function returned.
        failure: Why there is no result, or None.
        cached: Whether the result came out of a cache, where that is asked for.
    """

    __slots__ = (
        "attempts",
        "batch",
        "cached",
        "event_time",
        "failure",
        "index",
        "inputs",
        "key",
        "result",
        "seconds",
        "since",
        "started",
    )

    def __init__(self, inputs: tuple[Any, ...], batch: int, index: int) -> None:
        self.inputs = inputs
        self.batch = batch
        self.index = index
        self.event_time: int | None = None
        self.key: tuple[Any, ...] = ()
        self.since = 0
        self.attempts = 0
        self.started: float | None = None
        self.seconds = 0.0
        self.result: Any = None
        self.failure: Failure | None = None
        self.cached = False

    def __repr__(self) -> str:
        return f"row ({', '.join(map(shown, self.inputs))})"


class SecretRow(Row):
    """A row whose values appear in no error and no log."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"row {self.index} of Arrow batch {self.batch}"


def rows_of(columns: Sequence[pa.Array], batch: int, kind: type[Row] = Row) -> list[Row]:
    """The rows of one Arrow batch, given its input columns."""
    return [kind(inputs, batch, index) for index, inputs in enumerate(_values_of(columns))]


def put_event_times(rows: Sequence[Row], column: pa.Array) -> None:
    """Give the rows of one batch their event times: microseconds, so that no time zone's arithmetic is in the way."""
    times = pc.cast(column, pa.timestamp("us", tz=column.type.tz)).cast(pa.int64()).to_pylist()
    for row, time in zip(rows, times, strict=True):
        row.event_time = time


def put_keys(rows: Sequence[Row], columns: Sequence[pa.Array]) -> None:
    """Give the rows of one batch their keys. As in Spark's own grouping, one NaN equals another."""
    for row, key in zip(rows, _values_of(columns), strict=True):
        row.key = tuple(_NAN if value != value else value for value in key)  # noqa: PLR0124 - what makes a NaN


def shown(value: object, limit: int = 80) -> str:
    """A value's repr for an error message, shortened; a broken one must not hide the error that is being told."""
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001 - the user's, whatever it is
        text = f"<whose repr raised {type(error).__name__}>"
    return text if len(text) <= limit else f"{text[:limit]}…"


def _values_of(columns: Sequence[pa.Array]) -> Iterator[tuple[Any, ...]]:
    return zip(*map(_python_values, columns), strict=True)


def _python_values(column: pa.Array) -> list[Any]:
    values: list[Any] = column.to_pylist(maps_as_pydicts="strict") if _has_map(column.type) else column.to_pylist()
    return values


def _has_map(kind: pa.DataType) -> bool:
    return pa.types.is_map(kind) or any(_has_map(kind.field(i).type) for i in range(kind.num_fields))
