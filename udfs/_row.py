"""The rows: what goes through the operator for each row of an Arrow batch."""

from __future__ import annotations

from typing import Any

from ._text import message_of, shown, type_name

__all__ = ["Failure", "Row", "SecretRow"]


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
            "type": type_name(self.exception),
            "message": message_of(self.exception),
            "attempts": self.attempts,
            "seconds": self.seconds,
        }


class Row:
    """One row: what the function is called with, where the row stands, and what came of it.

    Attributes:
        inputs: The values of the input columns, as Python values; None for null.
        batch: The number of its Arrow batch in this task.
        index: Its place in that batch.
        nbytes: The size of that batch, in bytes, divided by its rows.
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
        "nbytes",
        "result",
        "seconds",
        "since",
        "started",
    )

    def __init__(self, inputs: tuple[Any, ...], batch: int, index: int, nbytes: int = 0) -> None:
        self.inputs = inputs
        self.batch = batch
        self.index = index
        self.nbytes = nbytes
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
