"""Memo table: the answers of a memo as rows of a DataFrame, to read and to add. Runs where: in Spark's thread."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa

from .._memo.answers import BUCKETS, Freshness, as_table, compute, latest, widened
from .._memo.directory import PASS_BYTES, Directory
from .._memo.keys import key_of
from .._memo.reader import Reader
from .._spark_task import current_partition
from .batches import slices
from .reading import values_of

# How far the clock of a worker may be behind the one that timed an added answer.
_AHEAD_SECONDS: Final = 3_600.0


def read_answers(
    path: str, schema: pa.Schema, freshness: Freshness, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The answers of a memo that count, bucket by bucket.

    Args:
        path: The directory.
        schema: The columns of its files.
        freshness: Which answers count.
        batches: The only column has the numbers of the buckets.

    Raises:
        MemoError: The memo cannot be read.
    """
    reader = Reader(Directory(path, schema))
    for batch in batches:
        for bucket in batch.column(0).to_pylist():
            table = latest(reader.bucket(bucket), freshness)
            for part in table.combine_chunks().to_batches():
                yield from slices(part)


def add_answers(
    path: str, schema: pa.Schema, version: str, partitions: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Write answers to a memo. Yields their number.

    Args:
        path: The directory.
        schema: The columns of its files.
        version: The version of the answers.
        partitions: The number of tasks. All rows of a task have buckets with the same remainder by it.
        batches: The columns are inputs, answer, time and bucket.

    Raises:
        ValueError: A time is null or in the future, or Python cannot represent an input.
    """
    buckets = range(current_partition(), BUCKETS, partitions)
    directory = Directory(path, schema)
    added: list[pa.Table] = []
    for batch in batches:
        added.append(_as_stored(batch, schema, version))
        if sum(table.nbytes for table in added) >= PASS_BYTES:
            directory.put_table(pa.concat_tables(added), buckets)
            added.clear()
        yield pa.RecordBatch.from_pydict({"answers": [batch.num_rows]})
    if added:
        directory.put_table(pa.concat_tables(added), buckets)


def _check_times(times: pa.Array) -> None:
    """Check that answers have times, and that none would hide later answers."""
    if times.null_count:
        raise ValueError(f"answered_at is null in {times.null_count} rows: set it, because the latest answer counts")
    latest_time = compute.max(times.cast(pa.timestamp("us", times.type.tz)).cast(pa.int64())).as_py() or 0
    ahead = latest_time / 1e6 - time.time()
    if ahead > _AHEAD_SECONDS:
        raise ValueError(
            f"answered_at must not be in the future, got a time that is {ahead:,.0f} s ahead: it would hide later "
            "answers, so set it to when the answer came"
        )


def _as_stored(batch: pa.RecordBatch, schema: pa.Schema, version: str) -> pa.Table:
    inputs, answers, times, buckets = batch.columns
    _check_times(times)
    fields = {each.name: array for each, array in zip(inputs.type, inputs.flatten(), strict=True)}
    wanted = schema.field("inputs").type
    columns = [fields[each.name] for each in wanted]
    values, failures = values_of(columns, None)
    if failures:
        raise ValueError(": ".join(next(iter(failures.values()))))
    return as_table(
        schema,
        version,
        buckets=buckets,
        keys=[key_of(version, each) for each in values],
        inputs=[array.cast(each.type) for array, each in zip(columns, wanted, strict=True)],
        answers=widened(answers, schema.field("answer").type),
        errors=pa.nulls(len(batch), schema.field("error").type),
        times=times,
    )
