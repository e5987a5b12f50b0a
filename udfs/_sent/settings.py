"""Settings of a UDF, an operator, a memo and a carry-over: made on the driver, pickled, and read by each task."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Final, Literal, TypeAlias, get_args

import pyarrow as pa
from pyspark.sql.types import DataType, StructType

from trio_asyncio_io import Options
from trio_asyncio_io.integration import check_bool, check_int, check_number

from .._limits.cluster_limits import LeasedLimit, TaskShare
from .function import PackedFunction
from .row import Row

ErrorMode: TypeAlias = Literal["raise", "null", "column"]
DEFAULT_ERROR: Final = "error"
Mode: TypeAlias = Literal["ordered", "unordered", "keyed"]
Flatten: TypeAlias = bool | Literal["outer"]


@dataclass(frozen=True, slots=True)
class Settings:
    """How the tasks of one UDF work.

    Args:
        function: The user's function, packed.
        options: The options of the operator, whose handlers each task adds.
        buffer: The buffer as the user gave it. `options` replaces None by the default for its capacity.
        buffer_bytes: About how many bytes the results have that one task holds; at least 1.
        on_timeout: The user's handler, packed: an async callable, input values -> result; or None.
        on_error: What becomes of a row that fails.
        error: The name of the column, or field, that `on_error="column"` adds.
        show_values: Whether errors may show the values of a row.
        open_timeout: Seconds that `open` of a function may take in a worker, above 0; `math.inf` for no limit.
        metadata: The name of a column, or field, that reports how each result was obtained; None: no such column.
        has_metrics: Whether a column is added from which Spark computes its sums.
        delay: For event time: the largest expected difference, in microseconds, between the latest row and a row
            behind it. None: no watermarks.
        skip_nulls: Whether a row with a null among its inputs has the result None without a call.
        limits: The parts that a task gets of a cluster's budget and rates. A budget comes first.

    Raises:
        TypeError, ValueError: An argument is out of range; the message names it and its value.
    """

    function: PackedFunction
    options: Options
    _: KW_ONLY
    buffer: int | None = None
    buffer_bytes: int = 64 * 1024 * 1024
    on_timeout: PackedFunction | None = None
    on_error: ErrorMode = "raise"
    error: str = DEFAULT_ERROR
    show_values: bool = True
    metadata: str | None = None
    open_timeout: float = 30.0
    has_metrics: bool = False
    delay: int | None = None
    skip_nulls: bool = False
    limits: tuple[TaskShare | LeasedLimit, ...] = ()

    def __post_init__(self) -> None:
        if self.on_error not in get_args(ErrorMode):
            raise ValueError(f'on_error must be "raise", "null" or "column", got {self.on_error!r}')
        for name in ("show_values", "skip_nulls"):
            check_bool(name, getattr(self, name))
        for name, value in (("error", self.error), ("metadata", self.metadata)):
            if not (isinstance(value, str) and value) and (name, value) != ("metadata", None):
                raise TypeError(f"{name} must be the name of a new column, got {value!r}")
        if self.error != DEFAULT_ERROR and self.on_error != "column":
            raise ValueError(
                f'error={self.error!r} names the column of on_error="column", got on_error={self.on_error!r}: '
                'give on_error="column", too, or omit error'
            )
        check_int("buffer_bytes", self.buffer_bytes, at_least=1)
        legal = "above 0 seconds"
        check_number("open_timeout", self.open_timeout, legal, lambda number: number > 0, noun="a number of seconds")

    def with_capacity(self, capacity: int) -> Settings:
        """These settings with another capacity, and the buffer that goes with it."""
        return replace(self, options=replace(self.options, capacity=capacity, buffer=self.buffer))

    @property
    def budget_name(self) -> str | None:
        """The name of the budget for the cluster, or None without one."""
        return next((limit.settled_name for limit in self.limits if isinstance(limit, LeasedLimit)), None)

    @property
    def measures_time(self) -> bool:
        """Whether any column reports how long a row took."""
        return self.on_error == "column" or self.metadata is not None or self.has_metrics

    def skips(self, row: Row) -> bool:
        """Whether the row has the result None without a call."""
        return self.skip_nulls and None in row.inputs


@dataclass(frozen=True, slots=True)
class Enrichment:
    """How a DataFrame operator enriches rows. Created on the driver, and pickled for the tasks.

    Args:
        settings: The settings of the UDF.
        added: The new columns.
        zone: The session's time zone.
        inputs: The positions of the columns that the function is called with.
        event_time: The position of the event time column, or None.
        key: The positions of the key columns, in keyed mode.
        flatten: Whether a result is a list of 0 to n outputs; "outer": a row without outputs has one null.
    """

    settings: Settings
    added: StructType
    zone: str
    _: KW_ONLY
    inputs: tuple[int, ...]
    event_time: int | None = None
    key: tuple[int, ...] = ()
    flatten: Flatten = False

    @property
    def output_type(self) -> DataType:
        """The type of an output: of the only new column, or a struct of several."""
        return self.added.fields[0].dataType if len(self.added) == 1 else self.added


@dataclass(frozen=True, slots=True)
class MemoSettings:
    """How the tasks of a query use a memo. Created on the driver, and pickled.

    Args:
        path: The directory.
        schema: The columns of its files.
        answer: The type of an answer: of the new column, a struct of several, or an array of these with `flatten`.
        version: What to write beside each answer. It is a part of the keys.
        max_age, remember_failures_for, write_every: The options of the memo, in seconds.
        partitions: The number of tasks. All rows of a task have buckets with the same remainder by it.
        in_buckets: Whether the rows are sorted by bucket.
    """

    path: str = field(repr=False)  # a URI may have a password
    schema: pa.Schema
    answer: DataType
    version: str
    max_age: float
    remember_failures_for: float
    write_every: float
    partitions: int
    in_buckets: bool


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
        legal = f"at least the budget, {self.budget!r} s"
        check_number("max_age", self.max_age, legal, lambda number: number >= self.budget, noun=noun)
