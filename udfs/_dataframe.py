"""The DataFrame operators: whole rows, with new columns beside the old ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Unpack

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, MapType, StructField, StructType

from ._bridge import enrich
from ._carry import Carry
from ._output import ERROR_TYPE, Output, error_array
from ._pack import parameter_names
from ._results import ResultTypeError, only_field
from ._rows import Failure, Row, event_times, rows_of
from ._schema import check_columns, event_time_column, microseconds, new_columns, position_of
from ._session import share_of, time_zone
from ._settings import Settings, SettingsArguments, make_settings

__all__ = ["ordered_wait", "unordered_wait"]

ERROR_COLUMN = "error"


@dataclass(frozen=True, slots=True)
class _Work:
    """What a task needs to know; pickled."""

    settings: Settings
    added: StructType
    zone: str
    inputs: tuple[int, ...]
    event_time: int | None
    flatten: bool

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        carry = Carry()
        output = self._output()
        for chunk in enrich(self._rows(batches, carry), self.settings):
            batch = self._batch(chunk, carry, output)
            if batch.num_rows:
                yield batch

    def _rows(self, batches: Iterator[pa.RecordBatch], carry: Carry) -> Iterator[list[Row]]:
        for batch in batches:
            if batch.num_rows:
                times = None if self.event_time is None else event_times(batch.column(self.event_time))
                yield rows_of([batch.column(i) for i in self.inputs], carry.add(batch), times)

    def _output(self) -> Output:
        kind: DataType = self.added.fields[0].dataType if len(self.added) == 1 else self.added
        return Output(kind, zone=self.zone, on_error=self.settings.on_error, name=self.settings.function.name)

    def _batch(self, chunk: list[Row], carry: Carry, output: Output) -> pa.RecordBatch:
        if self.flatten:
            outputs = [self._outputs(row) for row in chunk]
            copies = [len(each) for each in outputs]
            # Each output has a row of its own, for it may be the only one of its siblings that does not fit.
            rows = [copy(row) for row, each in zip(chunk, outputs, strict=True) for _ in each]
            values = [value for each in outputs for value in each]
        else:
            rows, copies, values = chunk, None, [row.result for row in chunk]
        added = output.array(rows, self._by_name(values))
        columns = [added] if len(self.added) == 1 else added.flatten()
        names = self.added.names
        if self.settings.on_error == "column":
            columns, names = [*columns, error_array(rows)], [*names, ERROR_COLUMN]
        old = carry.take(chunk, copies)
        return pa.RecordBatch.from_arrays([*old.columns, *columns], names=[*old.schema.names, *names])

    def _outputs(self, row: Row) -> list[Any]:
        """The 0 to n results of a row; one null for a row that failed."""
        if row.failure is not None:
            return [None]
        try:
            return self._listed(row)
        except Exception as error:
            if self.settings.on_error == "raise":
                raise
            row.failure = Failure(error, row.attempts, row.seconds)
            return [None]

    def _listed(self, row: Row) -> list[Any]:
        result = row.result
        if isinstance(result, Iterable) and not isinstance(result, str | bytes | Mapping):
            return list(result)
        raise ResultTypeError(
            f"{self.settings.function.name} returned {type(result).__name__}, and with flatten=True it must "
            f"return a list of 0 to n results, for {row!r}"
        )

    def _by_name(self, values: list[Any]) -> list[Any]:
        """The values of a single new column, where they came under its name."""
        field = self.added.fields[0]
        inner = field.dataType.names if isinstance(field.dataType, StructType) else []
        if len(self.added) > 1 or isinstance(field.dataType, MapType) or inner == [field.name]:
            return values
        return [only_field(value, field.name) for value in values]


def ordered_wait(
    df: DataFrame,
    function: Any,
    schema: DataType | str,
    *,
    timeout: float,
    inputs: Sequence[str] | None = None,
    flatten: bool = False,
    **arguments: Unpack[SettingsArguments],
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
        schema: The new columns: a DDL string such as "temp double, wind double", or a `StructType`.
        timeout: Seconds from the start of a row's invocation to its result, all attempts and backoffs included;
            not negative, `math.inf` for none. Required.
        inputs: The columns that the function is called with. None: those named like its parameters.
        flatten: True: the function returns a list of 0 to n results, and each row comes out as often.
        arguments: As in `trio_asyncio_io.Options`: `capacity=100`, invocations running at once in each running
            task; `buffer=None`, rows; `retry=None`; `on_timeout=None`, an async callable of the same
            arguments. Further: `cluster_capacity=None`, most invocations over all tasks that can run at
            once, shared evenly among them in place of `capacity`; `on_error="raise"` fails the job with the
            function's exception, "null" gives nulls, and "column" gives nulls and a column
            `error: struct<type, message, attempts, seconds>`, null where all went well.

    Returns:
        The DataFrame, with all its columns and the new ones behind them.

    Raises:
        TypeError: The function is not async, or captures what cannot be sent to the workers.
        ValueError: A column does not exist, or exists already, or an argument is out of its range.

    Example:
        ordered_wait(df, weather, "temp double, wind double", inputs=["origin", "time_hour"], timeout=5.0)
        df.transform(ordered_wait, weather, "temp double, wind double", timeout=5.0)
    """
    settings = _settings(df, function, timeout, dict(arguments), mode="ordered")
    return _wait(df, function, schema, inputs, settings, flatten=flatten)


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
    **arguments: Unpack[SettingsArguments],
) -> DataFrame:
    """The DataFrame with new columns from an async function, each row as soon as its result is there.

    **Order**: that of completion. With `event_time`, watermarks are made of that column within each partition,
    and no row crosses one: rows may overtake each other within about `max_out_of_orderness` of event time. They
    are the operator's own and independent of `withWatermark`, which may stand before or after.
    All else is as in `ordered_wait`.

    Args:
        df, function, schema, timeout, inputs, flatten, arguments: As in `ordered_wait`.
        event_time: The name of a timestamp column, or None. Rows where it is null move no watermark.
        max_out_of_orderness: With `event_time`: how much older than the latest row a row may still be, as
            an interval such as "10 seconds".

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
    if (event_time is None) != (max_out_of_orderness is None):
        raise ValueError("event_time and max_out_of_orderness belong together: give both or neither")
    delay = None if max_out_of_orderness is None else microseconds(max_out_of_orderness)
    settings = _settings(df, function, timeout, dict(arguments), mode="unordered", delay=delay)
    return _wait(df, function, schema, inputs, settings, flatten=flatten, event_time=event_time)


def _settings(df: DataFrame, function: Any, timeout: float, arguments: dict[str, Any], **more: Any) -> Settings:
    cluster_capacity = arguments.pop("cluster_capacity", None)
    if cluster_capacity is not None:
        arguments["capacity"] = share_of(cluster_capacity, df.sparkSession)
    return make_settings(function, timeout, arguments, **more)


def _wait(
    df: DataFrame,
    function: Any,
    schema: DataType | str,
    inputs: Sequence[str] | None,
    settings: Settings,
    *,
    flatten: bool,
    event_time: str | None = None,
) -> DataFrame:
    session = df.sparkSession
    names = _input_names(function, inputs)
    existing, added = df.schema, new_columns(schema)
    more = [StructField(ERROR_COLUMN, ERROR_TYPE)] if settings.on_error == "column" else []
    case = str(session.conf.get("spark.sql.caseSensitive")).lower() == "true"
    event = [] if event_time is None else [event_time]
    check_columns(existing.names, [*added.names, *(each.name for each in more)], [*names, *event], case=case)
    places = tuple(position_of(name, existing.names, case=case) for name in names)
    place = None if event_time is None else position_of(event_time, existing.names, case=case)
    if place is not None:
        event_time_column(existing.names[place], existing, place)
    work = _Work(settings, added, time_zone(session), places, place, flatten)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return work.run(batches)

    run.__name__ = run.__qualname__ = settings.function.name
    return df.mapInArrow(run, StructType([*existing.fields, *added.fields, *more]))


def _input_names(function: Any, inputs: Sequence[str] | None) -> list[str]:
    names: Any = parameter_names(function) if inputs is None else inputs
    is_list = isinstance(names, Sequence) and not isinstance(names, str)
    if not is_list or not names or not all(isinstance(name, str) for name in names):
        raise TypeError(f"inputs must be a list of one or more names of columns, got {inputs!r}")
    return list(names)
