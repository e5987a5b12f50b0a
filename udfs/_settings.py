"""The settings of a UDF: checked on the driver, pickled, and read by every task."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from operator import attrgetter
from typing import Any, Literal, TypeAlias, TypedDict, get_args

from trio_asyncio_io import Observer, Options, RetryStrategy

from ._packed_function import PackedFunction, dumped, pack
from ._row import Row, SecretRow

__all__ = ["ErrorMode", "Mode", "Settings", "SettingsArguments", "make_settings"]

ErrorMode: TypeAlias = Literal["raise", "null", "column"]
Mode: TypeAlias = Literal["ordered", "unordered", "keyed"]


class SettingsArguments(TypedDict, total=False):
    """The keyword arguments, beside `timeout`, that the column UDF and the DataFrame operators share."""

    capacity: int
    cluster_capacity: int | None
    buffer: int | None
    retry: RetryStrategy | None
    on_timeout: Any
    on_error: ErrorMode
    observer: Observer | None
    show_values: bool
    metadata: str | None
    open_timeout: float


@dataclass(frozen=True, slots=True)
class Settings:
    """How the tasks of one UDF work.

    Args:
        function: The user's function, packed.
        timeout: Seconds from the start of a row's invocation to its result.
        mode: "ordered", "unordered" or "keyed", by the rows' `key`.
        capacity: Most invocations running at once in one task.
        buffer: Most rows in the operator at once in one task; None: the operator's default.
        retry: A retry strategy, or None.
        on_timeout: Async callable, the input columns' values -> result, or None.
        on_error: What becomes of a row that failed.
        observer: Told of each step of each row's life, in the worker, or None.
        show_values: Whether errors may show the values of a row.
        open_timeout: Seconds that `open` of a function may take in a worker; `math.inf`: no bound.
        metadata: The name of a column, or field, that says of each row how its result was got; None: there is none.
        has_metrics: Whether there is a column from which Spark makes its sums.
        delay: For event time: how much older than the latest row a row may be, in microseconds. None: there
            are no watermarks.

    Raises:
        TypeError, ValueError: An argument is out of its range; the message names it and its value.
    """

    function: PackedFunction
    timeout: float
    _: KW_ONLY
    mode: Mode = "ordered"
    capacity: int = 100
    buffer: int | None = None
    retry: RetryStrategy | None = None
    on_timeout: PackedFunction | None = None
    on_error: ErrorMode = "raise"
    observer: Observer | None = None
    show_values: bool = True
    metadata: str | None = None
    open_timeout: float = 30.0
    has_metrics: bool = False
    delay: int | None = None

    def __post_init__(self) -> None:
        if self.on_error not in get_args(ErrorMode):
            raise ValueError(f'on_error must be "raise", "null" or "column", got {self.on_error!r}')
        if not isinstance(self.show_values, bool):
            raise TypeError(f"show_values must be True or False, got {self.show_values!r}")
        metadata: object = self.metadata
        if metadata is not None and not (isinstance(metadata, str) and metadata):
            raise TypeError(f"metadata must be the name of a new column, got {self.metadata!r}")
        _check_open_timeout(self.open_timeout)
        self.options(observer=self.observer)

    def options(self, **handlers: Any) -> dict[str, Any]:
        """The arguments of the operator, with the handlers for this task in place."""
        arguments = {
            "mode": self.mode,
            "timeout": self.timeout,
            "capacity": self.capacity,
            "buffer": self.buffer,
            "retry": self.retry,
            "key": attrgetter("key") if self.mode == "keyed" else None,
        } | handlers
        Options(**arguments)
        return arguments

    @property
    def keeps_time(self) -> bool:
        """Whether anybody asks how long a row took."""
        return self.on_error == "column" or self.metadata is not None or self.has_metrics

    @property
    def row(self) -> type[Row]:
        """The kind of row."""
        return Row if self.show_values else SecretRow

    @property
    def bound(self) -> int:
        """The buffer, in rows."""
        bound = Options(self.timeout, capacity=self.capacity, buffer=self.buffer).buffer
        assert bound is not None
        return bound


def _check_open_timeout(seconds: object) -> None:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise TypeError(f"open_timeout must be a number of seconds, got {seconds!r}")
    if not seconds > 0:
        raise ValueError(f"open_timeout must be above 0 seconds, got {seconds!r}")


def make_settings(function: Any, timeout: float, arguments: dict[str, Any], **more: Any) -> Settings:
    """The settings, with the callables packed.

    Raises:
        TypeError, ValueError: As in `Settings` and `pack`.
    """
    known = SettingsArguments.__annotations__
    for name in arguments.keys() - known.keys():
        raise TypeError(f"the UDF got an unexpected keyword argument {name!r}; there are timeout, {', '.join(known)}")
    handler = arguments.pop("on_timeout", None)
    on_timeout = None if handler is None else pack(handler, "on_timeout")
    settings = Settings(pack(function), timeout, on_timeout=on_timeout, **arguments, **more)
    dumped(settings.retry, "retry")
    dumped(settings.observer, "observer")
    return settings
