"""Carry-over: the option, and the error of a row that was carried over for too long."""

from __future__ import annotations

import math
from dataclasses import dataclass

from trio_asyncio_io.integration import check_int, check_number


class CarriedTooLongError(TimeoutError):
    """A row became older than `max_age` in the state store. It is not called again."""

    __module__ = "udfs"


@dataclass(frozen=True, slots=True)
class CarryOver:
    """A time budget for each micro-batch, so that stragglers do not delay it.

    When the budget is spent, unfinished calls are cancelled. Their rows are carried over: they go to Spark's state
    store in the transaction of the micro-batch, and the next micro-batch calls the function for them again, before its
    new rows. Each row comes out exactly once; its calls are made at least once. Flink's asynchronous operator does the
    same with the calls in flight at a checkpoint.

    Args:
        budget: Seconds that a task waits for the calls of a micro-batch; finite and above 0, 5 by default. A call that
            needs more than the budget never finishes, and its row is carried over until it is older than `max_age`.
        max_rows: Upper limit of carried rows per bucket, 0 or more, 10,000 by default; each task has one bucket. While
            more rows are unfinished, the task keeps running past its budget: this is the backpressure. 0: every
            micro-batch waits for all its calls.
        max_age: Seconds from the start of a row's first micro-batch after which the row is not called again; at least
            `budget`, 600 by default, `math.inf` for no limit. Such a row fails with a `CarriedTooLongError`, which goes
            where `on_error` sends it.

    Raises:
        TypeError, ValueError: An argument is out of range; the message names it and its value.

    Example:
        carry_over = CarryOver(budget=5.0)
        unordered_wait(stream, weather, "temp double", timeout=60.0, carry_over=carry_over)
    """

    __module__ = "udfs"

    budget: float = 5.0
    max_rows: int = 10_000
    max_age: float = 600.0

    def __post_init__(self) -> None:
        noun = "a number of seconds"
        legal = "a finite number of seconds above 0"
        check_number("budget", self.budget, legal, lambda number: 0 < number < math.inf, noun=noun)
        check_int("max_rows", self.max_rows, at_least=0)
        check_number("max_age", self.max_age, noun, lambda _: True, noun=noun)
        if not self.max_age >= self.budget:
            raise ValueError(f"max_age must not be below the budget, {self.budget!r} s, got {self.max_age!r}")
