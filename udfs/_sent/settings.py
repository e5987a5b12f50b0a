"""Settings of a UDF: checked on the driver, pickled, and read by each of its tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from operator import attrgetter
from typing import Any, Literal, TypeAlias, TypedDict, get_args

from trio_asyncio_io import Observer, Options, RetryStrategy
from trio_asyncio_io.gates import Gate, PerKey
from trio_asyncio_io.trace import TraceRecorder

from .cluster_rate import ClusterRate, LeasedRate, TaskShare
from .packed_function import PackedFunction, dumped, pack
from .row import Row, SecretRow

__all__ = ["ErrorMode", "Mode", "Settings", "SettingsArguments", "make_settings"]

ErrorMode: TypeAlias = Literal["raise", "null", "column"]
Mode: TypeAlias = Literal["ordered", "unordered", "keyed"]

# The arguments of a UDF that are also options of the operator
OPERATOR_ARGUMENTS = ("capacity", "buffer", "retry", "observer", "gate", "yield_slot_after")


class SettingsArguments(TypedDict, total=False):
    """The keyword arguments, besides `timeout`, that the column UDF and the DataFrame operators share."""

    capacity: int | tuple[int, int] | Literal["auto"]
    cluster_capacity: int | None
    cluster_rate: float | ClusterRate | None
    gate: Gate | PerKey | Sequence[Gate | PerKey] | None
    yield_slot_after: float | None
    buffer: int | None
    retry: RetryStrategy | None
    on_timeout: Any
    on_error: ErrorMode
    observer: Observer | None
    show_values: bool
    metadata: str | None
    open_timeout: float
    skip_nulls: bool


@dataclass(frozen=True, slots=True)
class Settings:
    """How the tasks of one UDF work.

    Args:
        function: The user's function, packed.
        options: The options of the operator, whose handlers each task adds.
        buffer: The buffer as the user gave it. `options` replaces None by the default for its capacity.
        on_timeout: The user's handler, packed: an async callable, input values -> result; or None.
        on_error: What becomes of a row that fails.
        show_values: Whether errors may show the values of a row.
        open_timeout: Seconds that `open` of a function may take in a worker, above 0; `math.inf` for no limit.
        metadata: The name of a column, or field, that reports how each result was obtained; None: no such column.
        has_metrics: Whether a column is added from which Spark computes its sums.
        delay: For event time: the largest expected difference, in microseconds, between the latest row and a row
            behind it. None: no watermarks.
        skip_nulls: Whether a row with a null among its inputs has the result None without a call.
        rate: The part of a cluster's rate that a task gets. None: there is no such rate.

    Raises:
        TypeError, ValueError: An argument is out of range; the message names it and its value.
    """

    function: PackedFunction
    options: Options
    _: KW_ONLY
    buffer: int | None = None
    on_timeout: PackedFunction | None = None
    on_error: ErrorMode = "raise"
    show_values: bool = True
    metadata: str | None = None
    open_timeout: float = 30.0
    has_metrics: bool = False
    delay: int | None = None
    skip_nulls: bool = False
    rate: TaskShare | LeasedRate | None = None

    def __post_init__(self) -> None:
        if self.on_error not in get_args(ErrorMode):
            raise ValueError(f'on_error must be "raise", "null" or "column", got {self.on_error!r}')
        for name in ("show_values", "skip_nulls"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be True or False, got {getattr(self, name)!r}")
        metadata: object = self.metadata
        if metadata is not None and not (isinstance(metadata, str) and metadata):
            raise TypeError(f"metadata must be the name of a new column, got {self.metadata!r}")
        _check_open_timeout(self.open_timeout)

    def with_capacity(self, capacity: int) -> Settings:
        """These settings with another capacity, and the buffer that goes with it."""
        return replace(self, options=replace(self.options, capacity=capacity, buffer=self.buffer))

    @property
    def measures_time(self) -> bool:
        """Whether any column reports how long a row took."""
        return self.on_error == "column" or self.metadata is not None or self.has_metrics

    def skips(self, row: Row) -> bool:
        """Whether the row has the result None without a call."""
        return self.skip_nulls and None in row.inputs

    @property
    def row_type(self) -> type[Row]:
        """The class of the rows."""
        return Row if self.show_values else SecretRow


def _check_recorder(observer: Observer | None) -> None:
    if isinstance(observer, TraceRecorder) and observer.path is None:
        raise ValueError('a TraceRecorder needs a directory for the files of the tasks: TraceRecorder("traces")')


def _check_open_timeout(seconds: object) -> None:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise TypeError(f"open_timeout must be a number of seconds, got {seconds!r}")
    if not seconds > 0:
        raise ValueError(f"open_timeout must be above 0 seconds, got {seconds!r}")


def make_settings(
    function: Any,
    timeout: float,
    arguments: SettingsArguments,
    *,
    mode: Mode = "ordered",
    per_key: int = 1,
    delay: int | None = None,
    has_metrics: bool = False,
) -> Settings:
    """The settings, with the callables packed.

    Args:
        function, timeout, arguments: From the user.
        mode, per_key, delay, has_metrics: From the public function that the user called.

    Raises:
        TypeError, ValueError: As in `Options`, `Settings` and `pack`.
    """
    known = SettingsArguments.__annotations__
    for name in arguments.keys() - known.keys():
        raise TypeError(f"the UDF got an unexpected keyword argument {name!r} (known: timeout, {', '.join(known)})")
    rest: dict[str, Any] = dict(arguments)
    options = {name: rest.pop(name) for name in OPERATOR_ARGUMENTS if name in rest}
    handler = rest.pop("on_timeout", None)
    settings = Settings(
        pack(function),
        Options(timeout, mode=mode, key=attrgetter("key") if mode == "keyed" else None, per_key=per_key, **options),
        buffer=options.get("buffer"),
        on_timeout=None if handler is None else pack(handler, "on_timeout"),
        delay=delay,
        has_metrics=has_metrics,
        **rest,
    )
    _check_recorder(settings.options.observer)
    dumped(settings.options.retry, "retry")
    dumped(settings.options.observer, "observer")
    dumped(settings.options.gate, "gate")
    return settings
