"""The plan of a query with a memo: rows of one key go to one task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql.types import ArrayType, DataType, LongType, StructField, StructType

from .._exceptions import traceback_as_note
from .._plan.row_plan import RowPlan
from .._plan.session import task_slots
from .._plan.worker_python import needs_packages
from .._sent.bucket_ids import bucket_ids
from .._sent.settings import Enrichment, Settings
from .conversion import MemoConversion, MemoTask
from .files import BUCKETS, MemoFiles
from .keys import check_key_type
from .layout import Layout
from .memo import Memo

__all__ = ["check_memo", "enriched_with_memo"]

BUCKET: Final = "__udfs_bucket"
PLACE: Final = "__udfs_place"

# `monotonically_increasing_id` has the number of the partition above this many bits.
_PLACE_BITS: Final = 33

_PARTITIONS_PER_SLOT: Final = 2


def check_memo(memo: Memo, df: DataFrame, mode: str, *, on_error: str, event_time: Any, carry_over: Any) -> None:
    """Check that the memo can be used with these arguments.

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


def enriched_with_memo(plan: RowPlan, memo: Memo) -> DataFrame:
    """The enriched DataFrame. The memo is made if it does not exist.

    Raises:
        MemoError: The memo belongs to another function, or to other types.
        OSError: It cannot be written.
        TypeError: The values of an input cannot be compared.
        ValueError: A key is not among the inputs, or no file system for the path is installed.
    """
    enrichment, df = plan.enrichment, plan.source
    layout = _layout(plan, memo)
    layout.claim(MemoFiles(memo.path))
    spread = [F.col(df.columns[n]) for n in enrichment.key or enrichment.inputs]
    has_places = enrichment.settings.options.mode != "unordered"
    enrichment = replace(enrichment, settings=_unordered(enrichment.settings))
    task = MemoTask(memo, layout, len(plan.columns), in_buckets=not df.isStreaming, has_places=has_places)
    schema = plan.schema
    df = df.withColumn(BUCKET, F.pmod(F.hash(*spread), F.lit(BUCKETS)))
    if has_places:
        df = df.withColumn(PLACE, F.monotonically_increasing_id())
        schema = StructType([*schema.fields, StructField(PLACE, LongType())])
    partitions = _partitions(df.sparkSession)
    df = df.repartition(partitions, _hashed_to(F.col(BUCKET), partitions))
    if task.in_buckets:
        df = df.sortWithinPartitions(BUCKET, *([PLACE] if has_places else []))
    enriched = df.mapInArrow(_named(enrichment, task), schema)
    return _in_place(enriched) if has_places else enriched


def _unordered(settings: Settings) -> Settings:
    """Settings without the order of the rows, which are sorted later: no answer has to wait for an earlier row."""
    options = settings.options
    return settings if options.mode == "keyed" else replace(settings, options=replace(options, mode="unordered"))


def _layout(plan: RowPlan, memo: Memo) -> Layout:
    enrichment = plan.enrichment
    inputs = StructType([plan.columns.fields[n] for n in dict.fromkeys(enrichment.inputs)])
    for each in inputs.fields:
        check_key_type(each.name, each.dataType)
    if not set(enrichment.key) <= set(enrichment.inputs):
        names = [plan.columns.names[n] for n in enrichment.key if n not in enrichment.inputs]
        raise ValueError(
            f"memo needs the key among the inputs, and {', '.join(names)} is not: rows with equal inputs would be in "
            "several tasks. Add it to inputs, or leave it out of key"
        )
    added = enrichment.added
    kind: DataType = added.fields[0].dataType if len(added) == 1 else added
    return Layout(
        function=memo.name or enrichment.settings.function.name,
        inputs=inputs,
        answer=ArrayType(kind) if enrichment.flatten else kind,
        spread_by=tuple(plan.columns.names[n] for n in enrichment.key or enrichment.inputs),
    )


def _partitions(session: Any) -> int:
    """The number of partitions of the calling stage: two for each task that can run at once, so that all of them call.

    Spark's own number is the upper limit, and the number if the tasks are not limited. Small partitions are not
    coalesced, because calls take the time, not bytes.
    """
    limit = min(BUCKETS, _shuffle_partitions(session))
    try:
        return min(limit, _PARTITIONS_PER_SLOT * task_slots(session))
    except ValueError:
        return limit


def _shuffle_partitions(session: Any) -> int:
    return int(str(session.conf.get("spark.sql.shuffle.partitions")))


def _hashed_to(number: Column, partitions: int) -> Column:
    """A column whose hash sends consecutive numbers to consecutive partitions, as the numbers' own would not."""
    ids = F.array(*map(F.lit, bucket_ids(partitions)))
    return F.element_at(ids, (number % partitions + 1).cast("int"))


def _in_place(df: DataFrame) -> DataFrame:
    """The rows in the order of the partitions that they came from. Rows of one partition stay together."""
    origin = F.shiftright(F.col(PLACE), _PLACE_BITS)
    target = _hashed_to(origin, _shuffle_partitions(df.sparkSession))
    return df.repartition(target).sortWithinPartitions(PLACE).drop(PLACE)


def _named(enrichment: Enrichment, task: MemoTask) -> Any:
    """The function for `mapInArrow`. Spark's plan shows it under the name of the user's function."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with traceback_as_note():
            yield from MemoConversion(enrichment, task).run(batches)

    run.__name__ = run.__qualname__ = enrichment.settings.function.name
    return needs_packages(run)
