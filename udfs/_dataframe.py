"""The DataFrame operators: whole rows, with new columns beside the old ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Unpack

import pyarrow as pa
from pyspark.sql import DataFrame, Observation
from pyspark.sql.types import DataType, StructField, StructType

from ._carry_over.options import CarryOver
from ._carry_over.plan import HASH_COLUMN, check_carry_over, in_stages
from ._packed_function import parameter_names
from ._plan.metrics import check_metrics, observed
from ._plan.schema import (
    check_columns,
    event_time_column,
    key_column,
    lookup_names,
    microseconds,
    new_columns,
    position_of,
)
from ._plan.session import share_of, time_zone
from ._plan.worker_python import needs_packages, use_the_drivers_python
from ._settings import Settings, SettingsArguments, make_settings
from ._task.converters import plan_fields
from ._task.enrichment import Enrichment
from ._task.output import extras_of
from ._task.tracebacks import traceback_as_note

__all__ = ["keyed_wait", "ordered_wait", "unordered_wait"]

NOT_ORDERED = (
    "ordered_wait has no carry_over: one straggler would hold back, and carry over, every row behind it. Take "
    "unordered_wait, or keyed_wait where the order matters for each key"
)


class DataFrameArguments(SettingsArguments, total=False):
    """The keyword arguments that only the DataFrame operators have."""

    metrics: str | Observation | None


def ordered_wait(
    df: DataFrame,
    function: Any,
    schema: DataType | str,
    *,
    timeout: float,
    inputs: Sequence[str] | None = None,
    flatten: bool = False,
    **arguments: Unpack[DataFrameArguments],
) -> DataFrame:
    """The DataFrame with new columns from an async function, its rows in the order they had in each partition.

    **Batch**: requests stay in flight across Arrow batches; there is no barrier at a batch's end. Input
    columns are carried over as Arrow and never become Python, but for those that the function is called with.
    **Order**: each partition's own. One straggler holds back the rows behind it, and no call; see `buffer`.
    **Nulls**: a null is None, in both directions; a result of None gives nulls. A `timestamp` comes as a
    datetime with the session's time zone; a naive one that is returned is in that zone.
    **Runs where**: in each task's Python worker, on a Trio loop that all tasks of the worker process share.
    An `AsyncFunction` is opened once per process, stays open from task to task and from micro-batch to
    micro-batch, and is closed after 45 idle seconds; a process that Spark kills closes nothing.

    Args:
        df: Batch or streaming.
        function: An async callable or an `AsyncFunction`, called with one row's values of the input columns.
            It returns a mapping, a dataclass or a (named) tuple with the new columns, or, for a single
            new column, its value.
        schema: The new columns: a DDL string such as "temp double, wind double", or a `StructType`. They are nullable,
            whatever it says.
        timeout: Seconds from the start of a row's invocation to its result, all attempts and backoffs included;
            not negative, `math.inf` for none. Required.
        inputs: The columns that the function is called with. None: those named like its parameters.
        flatten: True: the function returns a list of 0 to n results, and each row comes out as often.
        arguments: As in `trio_asyncio_io.Options`: `capacity=100`, invocations running at once in each running
            task; `buffer=None`, rows; `retry=None`; `on_timeout=None`, an async callable of the same
            arguments; `observer=None`, told in the worker. Further: `cluster_capacity=None`, most invocations over all
            tasks that can run at once, shared evenly among them in place of `capacity`; `on_error="raise"` fails the
            job with the function's exception, "null" gives nulls, and "column" gives nulls and a column
            `error: struct<type, message, attempts, seconds>`, null where all went well; `metadata=None`, or the name
            of a column struct<attempts, seconds, cached, error> that says how each result was got; `metrics=None`, or
            a name or `Observation` under which Spark counts what the calls came to; `open_timeout=30.0`,
            seconds that its `open` may take in a worker; `show_values=True`, False keeps the rows' values out of
            errors.

    Returns:
        The DataFrame, with all its columns and the new ones behind them.

    Raises:
        TypeError: The function is not async, or captures what cannot be sent to the workers.
        ValueError: A column does not exist, or exists already, or an argument is out of its range.

    Example:
        ordered_wait(df, weather, "temp double, wind double", inputs=["origin", "time_hour"], timeout=5.0)
        df.transform(ordered_wait, weather, "temp double, wind double", timeout=5.0)
    """
    metrics = arguments.pop("metrics", None)
    settings = _settings(df, function, timeout, dict(arguments), metrics, mode="ordered")
    return _wait(df, function, schema, inputs, settings, flatten=flatten, metrics=metrics)


def unordered_wait(
    df: DataFrame,
    function: Any,
    schema: DataType | str,
    *,
    timeout: float,
    inputs: Sequence[str] | None = None,
    flatten: bool = False,
    event_time: str | None = None,
    max_out_of_orderness: str | None = None,
    carry_over: CarryOver | None = None,
    **arguments: Unpack[DataFrameArguments],
) -> DataFrame:
    """The DataFrame with new columns from an async function, each row as soon as its result is there.

    **Order**: that of completion. With `event_time`, watermarks are made of that column within each partition,
    and no row crosses one: rows may overtake each other within about `max_out_of_orderness` of event time. They
    are the operator's own and independent of `withWatermark`. Call that after the operator, because
    Spark drops the watermark of a DataFrame that an operator in Python has transformed.
    All else is as in `ordered_wait`.

    Args:
        df, function, schema, timeout, inputs, flatten, arguments: As in `ordered_wait`.
        event_time: The name of a timestamp column, or None. Rows where it is null move no watermark.
        max_out_of_orderness: With `event_time`: how much older than the latest row a row may still be, as
            an interval such as "10 seconds".
        carry_over: For a streaming DataFrame, without `event_time`: a `CarryOver`, so that stragglers do not hold up
            the micro-batch. Their rows come out in a later one, exactly once; the output has no watermark.
            Needs the RocksDB state store, and shuffles all rows. None: a micro-batch waits for all its calls.

    Returns:
        The DataFrame, with all its columns and the new ones behind them.

    Raises:
        TypeError: The function is not async, or captures what cannot be sent; the event time is no timestamp.
        ValueError: A column does not exist, or exists already, or an argument is out of its range.

    Example:
        unordered_wait(
            df, weather, "temp double, wind double", timeout=5.0, event_time="ts", max_out_of_orderness="10 seconds"
        )
    """
    delay = _delay(event_time, max_out_of_orderness)
    metrics = arguments.pop("metrics", None)
    settings = _settings(df, function, timeout, dict(arguments), metrics, mode="unordered", delay=delay)
    more: dict[str, Any] = {"event_time": event_time, "metrics": metrics, "carry_over": carry_over}
    return _wait(df, function, schema, inputs, settings, flatten=flatten, **more)


def keyed_wait(
    df: DataFrame,
    function: Any,
    schema: DataType | str,
    *,
    key: str | Sequence[str],
    timeout: float,
    inputs: Sequence[str] | None = None,
    flatten: bool = False,
    event_time: str | None = None,
    max_out_of_orderness: str | None = None,
    carry_over: CarryOver | None = None,
    **arguments: Unpack[DataFrameArguments],
) -> DataFrame:
    """The DataFrame with new columns from an async function, one call at a time and in order for each key.

    Two rows of one key never run at once; rows of different keys do not wait for each other, and come out as their
    results are there.

    **Order**: that of the partition, for each key. Spark spreads rows over partitions as it likes: where all rows of a
    key must keep one order, bring them together first, `df.repartition("account").sortWithinPartitions("at")`.
    All else is as in `unordered_wait`. A row that waits for its key holds a place in the buffer, not a slot.

    Args:
        df, function, schema, timeout, inputs, flatten, event_time, max_out_of_orderness, carry_over, arguments: As in
            `unordered_wait`.
        key: The name of a column, or several: which rows must keep their order. A null is a key like any other.
            Arrays, maps and structs are none.

    Returns:
        The DataFrame, with all its columns and the new ones behind them.

    Raises:
        TypeError: As in `unordered_wait`, or a key column is an array, a map or a struct.
        ValueError: A column does not exist, or exists already, or an argument is out of its range.

    Example:
        keyed_wait(df, post, "receipt string", key="account", inputs=["account", "amount"], timeout=5.0)
    """
    delay = _delay(event_time, max_out_of_orderness)
    metrics = arguments.pop("metrics", None)
    settings = _settings(df, function, timeout, dict(arguments), metrics, mode="keyed", delay=delay)
    keys = _names("key", [key] if isinstance(key, str) else key)
    more: dict[str, Any] = {"event_time": event_time, "metrics": metrics, "carry_over": carry_over}
    return _wait(df, function, schema, inputs, settings, flatten=flatten, keys=keys, **more)


def _delay(event_time: str | None, max_out_of_orderness: str | None) -> int | None:
    if (event_time is None) != (max_out_of_orderness is None):
        raise ValueError("event_time and max_out_of_orderness belong together: give both or neither")
    return None if max_out_of_orderness is None else microseconds(max_out_of_orderness)


def _settings(
    df: DataFrame, function: Any, timeout: float, arguments: dict[str, Any], metrics: Any, **more: Any
) -> Settings:
    if metrics is not None:
        check_metrics(metrics)
    if "carry_over" in arguments:
        raise TypeError(NOT_ORDERED)
    cluster_capacity = arguments.pop("cluster_capacity", None)
    if cluster_capacity is not None:
        arguments["capacity"] = share_of(cluster_capacity, df.sparkSession)
    return make_settings(function, timeout, arguments, has_metrics=metrics is not None, **more)


def _wait(
    df: DataFrame,
    function: Any,
    schema: DataType | str,
    inputs: Sequence[str] | None,
    settings: Settings,
    *,
    flatten: bool,
    event_time: str | None = None,
    keys: Sequence[str] = (),
    metrics: Any = None,
    carry_over: CarryOver | None = None,
) -> DataFrame:
    if carry_over is not None:
        check_carry_over(carry_over, df)
        if event_time is not None:
            raise ValueError(
                f"carry_over and event_time={event_time!r} exclude each other: a row that is carried over comes out "
                "behind rows of later micro-batches, and would cross their watermarks"
            )
    session = df.sparkSession
    use_the_drivers_python(session)
    names = _names("inputs", parameter_names(function) if inputs is None else inputs)
    existing, added = df.schema, new_columns(schema)
    more = [StructField(extra.name, extra.kind) for extra in extras_of(settings)]
    case = str(session.conf.get("spark.sql.caseSensitive")).lower() == "true"
    event = [] if event_time is None else [event_time]
    wanted = [*names, *event, *keys]
    check_columns(existing.names, [*added.names, *(each.name for each in more)], wanted, case=case)
    place = {name: position_of(name, existing.names, case=case) for name in wanted}
    for name in event:
        event_time_column(existing.names[place[name]], existing, place[name])
    for name in keys:
        key_column(existing.names[place[name]], existing, place[name])
    work = Enrichment(
        settings,
        added,
        time_zone(session),
        inputs=tuple(place[name] for name in names),
        event_time=None if event_time is None else place[event_time],
        key=tuple(place[name] for name in keys),
        flatten=flatten,
    )

    existing = StructType(plan_fields(existing))
    result = StructType([*existing.fields, *plan_fields(added), *more])
    lookup = lookup_names(existing.names, HASH_COLUMN)
    source = df if lookup == existing.names else df.toDF(*lookup)
    if carry_over is not None:
        key = [lookup[place[name]] for name in keys]
        enriched = in_stages(source, work, carry_over, existing=existing, schema=result, key=key)
    else:
        enriched = source.mapInArrow(_named(work), result)
    return enriched if metrics is None else observed(enriched, metrics)


def _named(work: Enrichment) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The work as a function, which the plan shows under the name of the user's."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with traceback_as_note():
            yield from work.run(batches)

    run.__name__ = run.__qualname__ = work.settings.function.name
    return needs_packages(run)


def _names(what: str, names: Any) -> list[str]:
    is_list = isinstance(names, Sequence) and not isinstance(names, str)
    if not is_list or not names or not all(isinstance(name, str) for name in names):
        raise TypeError(f"{what} must be a list of one or more names of columns, got {names!r}")
    return list(names)
