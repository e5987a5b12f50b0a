"""The DataFrame operators: whole rows, with new columns behind the old ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack, cast

from pyspark.sql import DataFrame
from pyspark.sql.types import DataType

from trio_asyncio_io import Options
from trio_asyncio_io.integration import check_keywords, list_keywords

from ._plan.arguments import DataFrameArguments, StreamArguments, UDFArguments
from ._plan.query import build_query
from ._sent.settings import Flatten, Settings

NO_CARRY_OVER = (
    "ordered_wait has no carry_over: one straggler would delay, and carry over, every row behind it. Use "
    "unordered_wait, or keyed_wait if rows of one key must stay in order"
)
NO_EVENT_TIME = (
    "ordered_wait has no event_time: all of its rows stay in order, so none can cross a watermark. Omit event_time and "
    "max_out_of_orderness, or use unordered_wait"
)


@list_keywords(DataFrameArguments, UDFArguments, Settings, Options)
def ordered_wait(
    df: DataFrame,
    function: Any,
    schema: DataType | str,
    *,
    timeout: float,
    inputs: Sequence[str] | None = None,
    flatten: Flatten = False,
    **arguments: Unpack[DataFrameArguments],
) -> DataFrame:
    """Add the results of an async function as columns. Rows stay in the order of their partition.

    The function is called once per row, for many rows at a time.

    Semantics:
        * **Batch**: as in `async_pandas_udf`. Columns that are not inputs are never converted to Python.
        * **Order**: the order of the partition. A straggler delays the output of the rows behind it, but not their
          calls, while the buffer has room.
        * **Nulls**: as in `async_pandas_udf`; a result of None is null in every new column.
        * **Runs where**: as in `async_pandas_udf`.

    Args:
        df: A batch or streaming DataFrame.
        function: An async callable or an `AsyncFunction`. It is called with the values of one row's input columns, and
            returns a mapping, a dataclass or a tuple with the values of the new columns. For a single new column, it
            may return the value itself.
        schema: The new columns: a DDL string such as "temp double, wind double", or a `StructType`. They are nullable,
            even if the schema says NOT NULL.
        timeout: Seconds from the start of a row's first call to its result, with all attempts and backoffs; 0 or more,
            `math.inf` for no limit. Required.
        inputs: The names of the input columns, one for each parameter of the function. None: the names of these,
            without those that a `partial` binds.
        flatten: True: the function returns a list of 0 to n results, and the row comes out once for each of them.
            "outer": a row with an empty list also comes out, with null in the new columns, as in a left join.
        on_error: "raise" (the default) fails the job with the function's exception; "null" puts null in the new
            columns; "column" also adds a column struct<type, message, attempts, seconds>, which is null for a row that
            did not fail.
        error: The name of that column, "error" by default. Each of several operators in a row needs its own.
        metadata: The name of another column that reports how each result was obtained: the struct of `metadata` in
            `async_pandas_udf`. None (the default): no such column.
        metrics: A name, or in a batch query an `Observation`, under which Spark sums up calls, errors and times. None
            (the default): no sums.
        memo: A directory of answers, or a `Memo` with options. Known keys are answered without a call, others are
            called once in all tasks. All rows are shuffled. None (the default): each row is called.
        skip_nulls: True: a row with null in an input column makes no call. Its result is None; with `flatten`, it has
            no outputs. False by default: the function is called with None.
        And the other keyword arguments of `UDFArguments`.

    Returns:
        The DataFrame with all its columns, and the new ones behind them.

    Raises:
        TypeError: The function is not async, takes another number of inputs, or captures an object that cannot be sent
            to the workers.
        ValueError: A column does not exist, a new column exists already, or an argument is out of range.

    Example:
        ordered_wait(df, weather, "temp double", inputs=["origin", "time_hour"], timeout=5.0)
        df.transform(ordered_wait, weather, "temp double, wind double", timeout=5.0)
    """
    if "carry_over" in arguments:
        raise TypeError(NO_CARRY_OVER)
    if arguments.keys() & {"event_time", "max_out_of_orderness"}:
        raise TypeError(NO_EVENT_TIME)
    check_keywords(ordered_wait, arguments)
    given = cast("StreamArguments", arguments)
    return build_query(df, function, schema, timeout, given, mode="ordered", inputs=inputs, flatten=flatten)


@list_keywords(StreamArguments, ordered_wait)
def unordered_wait(
    df: DataFrame,
    function: Any,
    schema: DataType | str,
    *,
    timeout: float,
    inputs: Sequence[str] | None = None,
    flatten: Flatten = False,
    **arguments: Unpack[StreamArguments],
) -> DataFrame:
    """Add the results of an async function as columns. Each row comes out as soon as its result is available.

    Semantics:
        * **Order**: completion order. With `event_time`, each task generates watermarks from that column, and no row
          crosses a watermark: a row overtakes others only within about `max_out_of_orderness` of event time. These
          watermarks are independent of `withWatermark`; call that after the operator.
        * **Batch**, **Nulls** and **Runs where** are as in `ordered_wait`.

    Args:
        The same as for `ordered_wait`, and:
        event_time: The name of a timestamp column. A row with null there advances no watermark. None (the default): no
            watermarks.
        max_out_of_orderness: The largest expected difference in event time between the latest row and a row behind it:
            an interval such as "10 seconds". Required with `event_time`.
        carry_over: For a streaming DataFrame without `event_time`: a `CarryOver`, so that stragglers do not delay the
            micro-batch. Their rows come out of a later micro-batch, each exactly once. The output has no watermark.
            Needs the RocksDB state store, and shuffles all rows. None (the default): a micro-batch waits for all its
            calls.

    Returns:
        The DataFrame with all its columns, and the new ones behind them.

    Raises:
        TypeError: As in `ordered_wait`, or the event time is not a timestamp column.
        ValueError: As in `ordered_wait`, or `carry_over` is given where it cannot work.

    Example:
        unordered_wait(
            df,
            weather,
            "temp double, wind double",
            timeout=5.0,
            event_time="ts",
            max_out_of_orderness="10 seconds",
        )
    """
    check_keywords(unordered_wait, arguments)
    return build_query(df, function, schema, timeout, arguments, mode="unordered", inputs=inputs, flatten=flatten)


@list_keywords(StreamArguments, unordered_wait)
def keyed_wait(
    df: DataFrame,
    function: Any,
    schema: DataType | str,
    *,
    key: str | Sequence[str],
    timeout: float,
    inputs: Sequence[str] | None = None,
    flatten: Flatten = False,
    **arguments: Unpack[StreamArguments],
) -> DataFrame:
    """Add the results of an async function as columns. For each key, rows stay in order, one call at a time.

    Rows of different keys do not wait for each other. A row that waits for its key counts towards `buffer`, not
    towards `capacity`.

    Semantics:
        * **Order**: for each key, the order of the partition. Spark may distribute the rows of a key over several
          partitions. If all rows of a key must stay in order, bring them together first:
          `df.repartition("account").sortWithinPartitions("at")`.
        * **Batch**, **Nulls** and **Runs where** are as in `ordered_wait`.

    Args:
        The same as for `unordered_wait`, and:
        key: The name of the key column, or a list of names. Null is a key like any other. Arrays, maps, structs and
            strings with a collation cannot be keys.

    Returns:
        The DataFrame with all its columns, and the new ones behind them.

    Raises:
        TypeError: As in `unordered_wait`, or a key column cannot be one.
        ValueError: As in `unordered_wait`.

    Example:
        keyed_wait(df, book, "receipt string", key="account", timeout=5.0)
    """
    check_keywords(keyed_wait, arguments)
    return build_query(df, function, schema, timeout, arguments, mode="keyed", inputs=inputs, flatten=flatten, key=key)
