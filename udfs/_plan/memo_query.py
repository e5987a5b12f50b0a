"""The plan of a query with a memo, in which all rows of a key go to one task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql import types as T  # noqa: N812 - the usual name

from .._memo.directory import Directory
from .._memo.merge import merge
from .._sent.arrow_types import parts_of
from .._sent.settings import MemoSettings, Settings
from .._spark_thread.memo_rows import with_answers
from .._spark_version import VariantType
from .memo import Memo
from .memo_layout import bucket_of, calling_partitions, hashed_to, memo_schema, nullable
from .row_plan import BUCKET_COLUMN, PLACE_COLUMN, RowPlan
from .schema import check_collations
from .session import shuffle_partitions
from .worker_python import for_map_in_arrow

# `monotonically_increasing_id` has the number of the partition above this many bits.
_PLACE_BITS: Final = 33

# Types with an Arrow type whose equal values may differ in Python
_NOT_COMPARABLE: Final = (T.MapType, T.NullType, VariantType)


def check_memo(memo: Memo, df: DataFrame, mode: str, *, on_error: str, event_time: Any, carry_over: Any) -> None:
    """Check that the memo can be used with these arguments.

    Args:
        memo: The memo.
        df: The DataFrame to enrich.
        mode: The mode of the operator, such as "ordered".
        on_error, event_time, carry_over: From the user.

    Raises:
        ValueError: It cannot.
    """
    for name, value in (("event_time", event_time), ("carry_over", carry_over)):
        if value is not None:
            raise ValueError(
                f"memo and {name} exclude each other: with a memo, the rows of one key are brought together, and leave "
                "the order in which they arrive"
            )
    if df.isStreaming and mode != "unordered":
        raise ValueError(
            f"{mode}_wait with a memo sorts its rows, which Spark cannot do in a stream: use unordered_wait, or call "
            f"{mode}_wait inside foreachBatch"
        )
    if memo.remember_failures_for and on_error == "raise":
        raise ValueError(
            f'remember_failures_for={memo.remember_failures_for!r} needs on_error="null" or "column": with '
            '"raise", the first failure ends the query'
        )


def query_with_memo(plan: RowPlan, memo: Memo) -> DataFrame:
    """The enriched DataFrame. The memo is made if it does not exist, and its small files are merged.

    Raises:
        MemoError: The memo belongs to another function, or to other types.
        OSError: It cannot be written.
        TypeError: The values of an input cannot be compared, or the types cannot be stored.
        ValueError: A key is not among the inputs, or no file system for the path is installed.
    """
    enrichment, df = plan.enrichment, plan.source
    mode = enrichment.settings.options.mode
    keeps_order = mode != "unordered"
    partitions = calling_partitions(df.sparkSession)
    settings = memo_settings(plan, memo, partitions)
    claim(settings)
    if keeps_order:
        df = df.withColumn(PLACE_COLUMN, F.monotonically_increasing_id())
    spread = [F.col(plan.source.columns[n]) for n in enrichment.key or enrichment.inputs]
    df = df.withColumn(BUCKET_COLUMN, bucket_of(spread))
    df = df.repartition(partitions, hashed_to(F.col(BUCKET_COLUMN), partitions))
    if settings.in_buckets:
        df = df.sortWithinPartitions(BUCKET_COLUMN, *([PLACE_COLUMN] if keeps_order else []))
    enrichment = replace(enrichment, settings=_unordered(enrichment.settings))
    run = for_map_in_arrow(enrichment.settings.function.name, partial(with_answers, enrichment, settings))
    fields, number = plan.schema.fields, len(plan.columns)
    place = [T.StructField(PLACE_COLUMN, T.LongType())] if keeps_order else []
    # Old answers may have nulls where this query declares NOT NULL
    new = [T.StructField(each.name, nullable(each.dataType), metadata=each.metadata) for each in fields[number:]]
    with_results = df.mapInArrow(run, T.StructType([*fields[:number], *place, *new]))
    if not keeps_order:
        return with_results
    if mode == "ordered":
        with_results = _in_partitions(with_results)
    return with_results.sortWithinPartitions(PLACE_COLUMN).drop(PLACE_COLUMN)


def memo_settings(plan: RowPlan, memo: Memo, partitions: int) -> MemoSettings:
    """How each task uses the memo.

    Args:
        plan: The operator.
        memo: The memo.
        partitions: The number of tasks.

    Raises:
        TypeError: The values of an input cannot be compared.
        ValueError: A key or a renamed column is not among the inputs, or two inputs have one name.
    """
    enrichment = plan.enrichment
    inputs = T.StructType([plan.columns.fields[n] for n in dict.fromkeys(enrichment.inputs)])
    for each in inputs.fields:
        _check_input_type(each.name, each.dataType)
    if not set(enrichment.key) <= set(enrichment.inputs):
        names = [plan.columns.names[n] for n in enrichment.key if n not in enrichment.inputs]
        raise ValueError(
            f"memo needs the key among the inputs, and {', '.join(names)} is not: rows with equal inputs would be in "
            "several tasks. Add it to inputs, or leave it out of key"
        )
    answer = T.ArrayType(enrichment.output_type) if enrichment.flatten else enrichment.output_type
    function = memo.name or enrichment.settings.function.name
    old_names = _old_names(memo.renamed or {}, inputs.names)
    inputs = T.StructType([T.StructField(old_names[each.name], each.dataType, each.nullable) for each in inputs])
    spread_by = tuple(old_names[plan.columns.names[n]] for n in enrichment.key or enrichment.inputs)
    return MemoSettings(
        memo.path,
        memo_schema(function, inputs, answer, spread_by),
        answer,
        memo.version,
        memo.max_age,
        memo.remember_failures_for,
        memo.write_every,
        partitions,
        in_buckets=not plan.source.isStreaming,
    )


def claim(settings: MemoSettings) -> None:
    """Make the memo, or check that it has the same contents. Merge its files if there are many.

    Raises:
        MemoError: It belongs to another function, or to other types.
        OSError: It cannot be written.
        TypeError: The types cannot be stored.
    """
    directory = Directory(settings.path, settings.schema)
    try:
        directory.claim()
    except pa.ArrowNotImplementedError as error:
        raise TypeError(f"memo cannot store the inputs or the answers ({error}): give them other types") from error
    merge(directory)


def _check_input_type(name: str, dtype: T.DataType) -> None:
    """Check that equal values of an input have equal keys.

    Raises:
        TypeError: They do not: there is a map, a variant, a collation or the like in the type.
    """
    if any(isinstance(part, _NOT_COMPARABLE) for part in parts_of(dtype)):
        raise TypeError(
            f"memo needs inputs whose values can be compared, and {name!r} is {dtype.simpleString()}: "
            "cast it, or use its parts or a string such as to_json(...)"
        )
    check_collations("memo", name, dtype)


def _old_names(renamed: Mapping[str, str], inputs: Sequence[str]) -> dict[str, str]:
    """The name in the memo of each input.

    Raises:
        ValueError: A renamed column is not an input, or two inputs would have one name.
    """
    if strangers := [new for new in renamed.values() if new not in inputs]:
        raise ValueError(
            f"renamed={renamed!r} must give the new names of inputs, and {strangers[0]!r} is not among "
            f"{', '.join(inputs)}: write {{name in the memo: name in the query}}"
        )
    old = {name: name for name in inputs} | {new: old for old, new in renamed.items()}
    if len(set(old.values())) < len(old):
        raise ValueError(f"renamed={renamed!r} gives two of the inputs {', '.join(inputs)} one name: rename both")
    return old


def _unordered(settings: Settings) -> Settings:
    """Settings without the order of the rows, which are sorted later: no answer has to wait for an earlier row."""
    options = settings.options
    return settings if options.mode == "keyed" else replace(settings, options=replace(options, mode="unordered"))


def _in_partitions(df: DataFrame) -> DataFrame:
    """The rows in partitions in the order of those that they came from. Rows of one partition stay together."""
    origin = F.shiftright(F.col(PLACE_COLUMN), _PLACE_BITS)
    return df.repartition(hashed_to(origin, shuffle_partitions(df.sparkSession)))
