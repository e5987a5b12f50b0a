"""Memo layout: the columns of a memo's files, and the task of a query that has all rows of a key."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the usual name
from pyspark.sql import types as T  # noqa: N812 - the usual name

from .._memo.answers import BUCKETS, CONTENTS
from .._sent.arrow_types import arrow_type, plan_type
from .._sent.bucket_ids import bucket_ids
from .._sent.extra_columns import ERROR_TYPE
from .session import shuffle_partitions, task_slots

# The metadata of a file with the Spark types of its columns.
_SPARK_TYPES: Final = b"udfs.spark"

_PARTITIONS_PER_SLOT: Final = 2


def memo_schema(function: str, inputs: T.StructType, answer: T.DataType, spread_by: tuple[str, ...]) -> pa.Schema:
    """The columns of a memo's files.

    Args:
        function: The name of the function.
        inputs: The input columns of a call.
        answer: The type of an answer: of the new column, a struct of several, or an array of these with `flatten`.
        spread_by: The names of the input columns whose hash is the bucket.
    """
    contents = {
        "format": 1,
        "function": function,
        "inputs": plan_type(inputs).simpleString(),
        "answer": plan_type(answer).simpleString(),
        "spread_by": list(spread_by),
        "buckets": BUCKETS,
    }
    types = T.StructType().add("bucket", "integer").add("key", "binary")
    types = types.add("inputs", nullable(plan_type(inputs))).add("answer", nullable(plan_type(answer)))
    types = types.add("error", ERROR_TYPE).add("answered_at", "timestamp")
    types = types.add("function", "string").add("version", "string")
    metadata = {CONTENTS: json.dumps(contents, sort_keys=True), _SPARK_TYPES: types.json()}
    return pa.schema(list(arrow_type(types)), metadata=metadata)


def spark_types(schema: pa.Schema) -> T.StructType:
    """The Spark types of the columns of a memo's files."""
    return T.StructType.fromJson(json.loads(schema.metadata[_SPARK_TYPES]))


def nullable(dtype: T.DataType) -> T.DataType:
    """The type with nulls allowed everywhere: two queries of one function may declare them differently."""
    if isinstance(dtype, T.StructType):
        return T.StructType([T.StructField(each.name, nullable(each.dataType)) for each in dtype.fields])
    if isinstance(dtype, T.ArrayType):
        return T.ArrayType(nullable(dtype.elementType))
    if isinstance(dtype, T.MapType):
        return T.MapType(nullable(dtype.keyType), nullable(dtype.valueType))
    return dtype


def bucket_of(spread: Sequence[Column]) -> Column:
    """The bucket of the rows. Rows with equal values have the same one."""
    return F.pmod(F.hash(*spread), F.lit(BUCKETS))


def hashed_to(number: Column, partitions: int) -> Column:
    """A column whose hash spreads consecutive numbers over consecutive partitions. Their own hash does not."""
    ids = F.array(*map(F.lit, bucket_ids(partitions)))
    return F.element_at(ids, (number % partitions + 1).cast("int"))


def calling_partitions(session: Any) -> int:
    """The number of partitions of the calling stage: two for each task that can run at once, so that all of them call.

    Spark's own number is the upper limit, and the number if the tasks are not limited. Small partitions are not
    coalesced, because calls take the time, not bytes.
    """
    limit = min(BUCKETS, shuffle_partitions(session))
    try:
        return min(limit, _PARTITIONS_PER_SLOT * task_slots(session))
    except ValueError:
        return limit
