"""Answers: the columns of a memo's files, and which of several answers for a key counts."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.compute

compute: Any = pyarrow.compute  # type checkers do not see its functions, which are made at import

# Answers are divided into this many buckets by the hash of their inputs. A task reads one bucket at a time.
BUCKETS: Final = 256

# The metadata of a schema that identifies a memo: the function, its inputs and the type of its answers.
CONTENTS: Final = b"udfs.memo"


@dataclass(frozen=True, slots=True)
class Freshness:
    """Which answers count.

    Attributes:
        since: The earliest time of an answer, in seconds since the epoch.
        failures_since: The earliest time of a failure; `math.inf` if failures are not remembered.
    """

    since: float
    failures_since: float

    @classmethod
    def at(cls, now: float, max_age: float, remember_failures_for: float) -> Self:
        """The cut-off times for answers and failures.

        Args:
            now: The time, in seconds since the epoch.
            max_age, remember_failures_for: As for `Memo`, in seconds.
        """
        return cls(now - max_age, now - remember_failures_for if remember_failures_for else math.inf)


ALWAYS: Final = Freshness(-math.inf, -math.inf)


def contents_of(schema: pa.Schema) -> dict[str, Any]:
    """The metadata that identifies a memo with this schema. Empty for a schema of another origin."""
    contents: dict[str, Any] = json.loads((schema.metadata or {}).get(CONTENTS, b"{}"))
    return contents


def as_table(
    schema: pa.Schema,
    version: str,
    *,
    buckets: pa.Array,
    keys: Sequence[bytes],
    inputs: Sequence[pa.Array],
    answers: pa.Array,
    errors: pa.Array,
    times: pa.Array,
) -> pa.Table:
    """Answers as a file has them.

    Args:
        schema: The columns of the files.
        version: The version of these answers.
        buckets, keys, answers, errors, times: One for each answer.
        inputs: The input columns.
    """
    columns = [
        buckets.cast(pa.int32()),
        pa.array(keys, pa.binary()),
        pa.StructArray.from_arrays(inputs, fields=list(schema.field("inputs").type)),
        answers,
        errors,
        times.cast(schema.field("answered_at").type),
        pa.repeat(contents_of(schema)["function"], len(answers)),
        pa.repeat(version, len(answers)),
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def digest_of(schema: pa.Schema) -> str:
    """A digest of what identifies the memo."""
    return blake2b((schema.metadata or {}).get(CONTENTS, b""), digest_size=8).hexdigest()


def has_grown(old: pa.Schema, new: pa.Schema) -> bool:
    """Whether the new schema is the old one, but for more fields in its answers. Old answers have null in these."""
    before, after = contents_of(old), contents_of(new)
    is_same = {**before, "answer": None} == {**after, "answer": None}
    return is_same and new_fields(old.field("answer").type, new.field("answer").type) is not None


def new_fields(old: pa.DataType, new: pa.DataType) -> list[str] | None:
    """The names of the fields of a type that the old one lacks; None if they also differ in another way."""
    if pa.types.is_list(old) and pa.types.is_list(new):
        return new_fields(old.value_type, new.value_type)
    if not (pa.types.is_struct(old) and pa.types.is_struct(new)):
        return [] if old == new else None
    before, after = ({each.name: each.type for each in dtype} for dtype in (old, new))
    if len(before) < old.num_fields or len(after) < new.num_fields or not before.keys() <= after.keys():
        return None
    found = [name for name in after if name not in before]
    for name, dtype in before.items():
        inner = new_fields(dtype, after[name])
        if inner is None:
            return None
        found += [f"{name}.{each}" for each in inner]
    return found


def widened(array: pa.Array, dtype: pa.DataType) -> pa.Array:
    """Values as a type that has all of their fields, and null in its other ones.

    Arrow's own cast does this only in newer versions.
    """
    if array.type == dtype:
        return array
    if pa.types.is_struct(dtype):
        fields = {each.name: array.field(n) for n, each in enumerate(array.type)}
        arrays = [
            widened(fields[each.name], each.type) if each.name in fields else pa.nulls(len(array), each.type)
            for each in dtype
        ]
        return pa.StructArray.from_arrays(arrays, fields=list(dtype), mask=array.is_null())
    if pa.types.is_list(dtype):
        lengths = compute.fill_null(compute.list_value_length(array), 0)
        offsets = pa.concat_arrays([pa.array([0], pa.int32()), compute.cumulative_sum(lengths)])
        values = widened(array.flatten(), dtype.value_type)
        return pa.ListArray.from_arrays(offsets, values, dtype, mask=array.is_null())
    return array.cast(dtype)


def latest(table: pa.Table, fresh: Freshness, by: tuple[str, ...] = ("key",)) -> pa.Table:
    """The latest fresh answer for each key; with `by=("key", "failed")` also the latest failure.

    Args:
        table: Answers and failures, with the columns of a file.
        fresh: Which of them count.
        by: One row is kept for each combination of values of these: "key", and "failed", which is true for a failure.
    """
    times = table.column("answered_at").cast(pa.int64())
    failed = compute.is_valid(table.column("error"))
    since = compute.if_else(failed, fresh.failures_since * 1e6, fresh.since * 1e6)
    numbers = pa.array(range(table.num_rows), pa.int64())
    rows = pa.table({"key": table.column("key"), "failed": failed, "time": times, "row": numbers})
    rows = rows.filter(compute.greater_equal(compute.cast(times, pa.float64()), since))
    rows = rows.sort_by([("time", "descending")])
    newest = rows.group_by(list(by), use_threads=False).aggregate([("row", "first")])
    return table.take(newest.column("row_first"))
