"""Arguments of the public functions: checked, and turned into the settings of the tasks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, Literal, TypedDict

from pyspark.sql import Observation

from trio_asyncio_io import Observer, Options, RetryStrategy
from trio_asyncio_io.gates import Auto, Gate, PerKey
from trio_asyncio_io.trace import TraceRecorder

from .._limits.cluster_limits import ClusterBudget, ClusterRate
from .._sent.function import dumped, pack
from .._sent.settings import CarryOver, ErrorMode, Mode, Settings
from .limits import limits_for_tasks
from .memo import Memo
from .session import share_of

# The arguments of a UDF that are also options of the operator
OPERATOR_ARGUMENTS = ("capacity", "buffer", "retry", "observer", "gate", "group", "group_wait", "group_split")
# Those that `for_session` reads
CLUSTER_ARGUMENTS = frozenset({"cluster_capacity", "cluster_rate", "cluster_budget"})


class UDFArguments(TypedDict, total=False):
    """The keyword arguments, besides `timeout`, that the column UDF and the DataFrame operators share.

    The public functions describe those whose effect differs.

    Args:
        capacity: Upper limit of invocations that run at once in one task; 1 or more, 100 by default. "auto": each
            Python worker process finds how many the service takes, up to 800; see `gates.Auto`. The number lasts from
            one task to the next. Not together with `cluster_capacity`.
        gate: A gate of `trio_asyncio_io.gates`, or a list of them, that delays the start of calls. Each Python worker
            process has its own copy, whose state lasts from one task to the next. With a `gates.PerKey`, each key has
            its own copy. None by default.
        cluster_capacity: Upper limit of invocations that run at once in all tasks together. Each task gets an equal
            share as its `capacity`. At least the number of tasks that can run at once. None (the default): no limit.
        cluster_rate: Upper limit of calls that start per second in all tasks together, retries included. Each task gets
            an equal share, rounded down to whole calls, so the rate must be at least the number of tasks that can run
            at once, and skewed partitions use only a part of it. A `ClusterRate` can lease it to the tasks that have
            rows, or weigh the calls. A list sets several limits. None (the default): no limit.
        cluster_budget: A `ClusterBudget`: what the calls of all tasks together may cost. None (the default): no limit.
        buffer: Upper limit of rows that one task holds, results included, besides one chunk of at most 512 rows that is
            on its way to Spark; at least `capacity`. None (the default): a hundred times the capacity, at least 1,000
            and, unless the capacity is larger, at most 100,000.
        buffer_bytes: About how many bytes the results have that one task holds, by the mean size of a result; at least
            1, 64 MiB by default. It never lowers a `capacity` that is a number, so large results at a high capacity
            need more. With `capacity="auto"`, large results lower the calls at once, down to 8, or to the gate's
            `start`.
        retry: A retry strategy, such as `ExponentialBackoff`. None (the default): one call per row.
        on_timeout: An async callable with the parameters of the function, whose result becomes the result of a row that
            timed out. None (the default): the row fails.
        observer: An `Observer` whose methods are called in the worker at each step of a row. None by default.
        open_timeout: Seconds that `open` of the function may take in a worker; above 0, 30 by default.
        show_values: False keeps the values of the rows out of errors and logs. True by default.
        group: Upper limit of rows in one call, at least 1. The function gets one list for each input column, all of the
            same length, and returns a list with one result for each row. A result that is an exception is the failure
            of that one row. `capacity` then counts calls. `on_timeout`, a memo, the columns that report on a row and a
            restart see single rows. None (the default): the function gets single values.
        group_wait: Seconds for which the first row of a group waits for more; 0 or more, 0.05 by default. Used with
            `group`.
        group_split: Whether the rows of a call that has failed for the last time are called again in halves, until the
            row that fails is alone. False by default. Used with `group`.
    """

    capacity: int | Auto | Literal["auto"]
    cluster_capacity: int | None
    cluster_rate: float | ClusterRate | Sequence[float | ClusterRate] | None
    cluster_budget: ClusterBudget | None
    gate: Gate | PerKey | Sequence[Gate | PerKey] | None
    buffer: int | None
    buffer_bytes: int
    retry: RetryStrategy | None
    on_timeout: Any
    on_error: ErrorMode
    error: str
    observer: Observer | None
    show_values: bool
    metadata: str | None
    open_timeout: float
    skip_nulls: bool
    group: int | None
    group_wait: float
    group_split: bool


class DataFrameArguments(UDFArguments, total=False):
    """The keyword arguments that only the DataFrame operators have."""

    metrics: str | Observation | None
    memo: str | os.PathLike[str] | Memo | None


class StreamArguments(DataFrameArguments, total=False):
    """The keyword arguments that `ordered_wait` does not have."""

    event_time: str | None
    max_out_of_orderness: str | None
    carry_over: CarryOver | None


def check_dataframe(df: object) -> None:
    """Check the argument `df`, a DataFrame of a classic or a remote session.

    Raises:
        TypeError: It is something else.
    """
    # A column has any attribute, for the fields of a struct
    if not (callable(getattr(df, "mapInArrow", None)) and hasattr(df, "sparkSession")):
        name = f"{type(df).__module__.partition('.')[0]}.{type(df).__qualname__}".removeprefix("builtins.")
        is_column = type(df).__name__ == "Column"
        remedy = "give the DataFrame that has it" if is_column else "make one with spark.createDataFrame(...)"
        raise TypeError(f"df must be a Spark DataFrame, got a {name}: {remedy}")


def column_names(parameter: str, names: Any) -> list[str]:
    """The value of a parameter that takes names of columns.

    Raises:
        TypeError: It is not a list of one or more names.
    """
    is_list = isinstance(names, Sequence) and not isinstance(names, str)
    if not is_list or not names or not all(isinstance(name, str) for name in names):
        raise TypeError(f"{parameter} must be a list of one or more names of columns, got {names!r}")
    return list(names)


def make_settings(
    function: Any,
    timeout: float,
    arguments: UDFArguments,
    *,
    mode: Mode = "ordered",
    delay: int | None = None,
    has_metrics: bool = False,
) -> Settings:
    """The settings, with the callables packed. `for_session` adds the limits of a cluster.

    Args:
        function, timeout, arguments: From the user.
        mode, delay, has_metrics: From the public function that the user called.

    Raises:
        TypeError, ValueError: As in `Options`, `Settings` and `pack`.
    """
    _check_budget(arguments.get("cluster_budget"))
    rest: dict[str, Any] = {name: value for name, value in arguments.items() if name not in CLUSTER_ARGUMENTS}
    if (cluster_capacity := arguments.get("cluster_capacity")) is not None:
        if "capacity" in arguments:
            raise ValueError(
                f"capacity={arguments['capacity']!r} and cluster_capacity={cluster_capacity!r} exclude "
                "each other: give capacity for each task, or cluster_capacity for all tasks together"
            )
        rest["capacity"] = 1  # `for_session` replaces it
    options = {name: rest.pop(name) for name in OPERATOR_ARGUMENTS if name in rest}
    handler = rest.pop("on_timeout", None)
    settings = Settings(
        pack(function),
        Options.of(timeout, options, mode=mode, key=attrgetter("key") if mode == "keyed" else None),
        buffer=options.get("buffer"),
        on_timeout=None if handler is None else pack(handler, "on_timeout"),
        delay=delay,
        has_metrics=has_metrics,
        **rest,
    )
    observer = settings.options.observer
    if isinstance(observer, TraceRecorder) and observer.path is None:
        raise ValueError('a TraceRecorder needs a directory for the files of the tasks: TraceRecorder("traces")')
    for name in ("retry", "observer", "gate"):
        dumped(getattr(settings.options, name), name)
    return settings


def _check_budget(cluster_budget: object) -> None:
    if cluster_budget is None:
        return
    if not isinstance(cluster_budget, ClusterBudget):
        raise TypeError(f"cluster_budget must be a ClusterBudget such as ClusterBudget(50.0), got {cluster_budget!r}")
    dumped(cluster_budget, "cluster_budget")


def for_session(
    settings: Settings,
    cluster_capacity: int | None,
    cluster_rate: float | ClusterRate | Sequence[float | ClusterRate] | None,
    cluster_budget: ClusterBudget | None,
    session: Any,
) -> Settings:
    """The settings of a task, with its share of the limits of a cluster.

    Args:
        settings: What `make_settings` has returned.
        cluster_capacity, cluster_rate, cluster_budget: From the user.
        session: The session whose tasks share them.

    Raises:
        TypeError, ValueError: As in `share_of` and `limits_for_tasks`.
    """
    if cluster_capacity is not None:
        settings = settings.with_capacity(share_of(cluster_capacity, session))
    return replace(settings, limits=limits_for_tasks(cluster_rate, cluster_budget, session))
