"""The buckets: how rows are spread over the tasks of the stateful stage, one bucket to the task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import count

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from .ipc import to_payload

__all__ = ["Buckets", "bucket_ids", "partitions_of_query"]

# A place is the number of a partition, and below it that of a slice in this partition.
SLICES = 1 << 40

_BITS = 0xFFFF_FFFF

# Spark keeps a checkpoint's number of stateful partitions: since 4.1 in the first of these settings, before in the
# second, which it then sets back to that number. A task gets the settings of its query as local properties.
PARTITIONS = ("spark.sql.streaming.internal.stateStore.partitions", "spark.sql.shuffle.partitions")


@dataclass(frozen=True, slots=True)
class Buckets:
    """Cuts record batches into slices, one row for each: its bucket, its place in the order of the input, its payload.

    What is cut depends on the partition and its rows alone: a task that Spark repeats cuts the same.

    Args:
        ids: The buckets' numbers.
        names: The names of the columns in the payloads.
        by_hash: True: the last column is a hash by which rows are assigned to a bucket, and is dropped. False: rows
            go round.
    """

    ids: tuple[int, ...]
    names: tuple[str, ...]
    by_hash: bool = False

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The slices; in a task of Spark."""
        context = TaskContext.get()
        return self.cut(batches, 0 if context is None else context.partitionId())

    def cut(self, batches: Iterator[pa.RecordBatch], partition: int) -> Iterator[pa.RecordBatch]:
        """The slices of a partition's batches, a batch of them for each."""
        places = count(partition * SLICES)
        turn = partition
        for batch in batches:
            if not batch.num_rows:
                continue
            parts = dict(self._by_hash(batch) if self.by_hash else self._in_turn(batch, turn))
            turn += len(parts)
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array([self.ids[each] for each in parts], pa.int32()),
                    pa.array([next(places) for _ in parts], pa.int64()),
                    pa.array([to_payload(part.rename_columns(self.names)) for part in parts.values()], pa.binary()),
                ],
                names=["bucket", "place", "payload"],
            )

    def _in_turn(self, batch: pa.RecordBatch, turn: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Slices of even size, the first for the bucket whose turn it is."""
        parts = min(len(self.ids), batch.num_rows)
        edges = [batch.num_rows * part // parts for part in range(parts + 1)]
        for part in range(parts):
            start, end = edges[part], edges[part + 1]
            yield (turn + part) % len(self.ids), batch.slice(start, end - start)

    def _by_hash(self, batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        *columns, hashes = batch.columns
        rows = pa.RecordBatch.from_arrays(columns, schema=pa.schema(list(batch.schema)[:-1]))
        chosen = pa.array([value % len(self.ids) for value in hashes.to_pylist()], pa.int32())
        for each in sorted(chosen.unique().to_pylist()):
            yield each, rows.filter(pc.equal(chosen, each))  # pyright: ignore[reportAttributeAccessIssue] - made at import


def partitions_of_query(planned: int) -> int:
    """The number of partitions of the stateful stage, in one of the query's tasks; `planned` if Spark does not say."""
    context = TaskContext.get()
    found = (context.getLocalProperty(name) for name in PARTITIONS) if context is not None else ()
    return next((int(number) for number in found if number), planned)


@cache
def bucket_ids(partitions: int) -> tuple[int, ...]:
    """A number for each partition of the stateful stage, such that Spark's hash puts it there.

    With the numbers from 0 on, some partitions would have several buckets and others none.
    """
    found: dict[int, int] = {}
    for number in count():
        found.setdefault(hash_of(number) % partitions, number)
        if len(found) == partitions:
            break
    return tuple(found[place] for place in range(partitions))


def hash_of(number: int) -> int:
    """Spark's `hash` of an int of 0 or more: 32-bit Murmur3 with the seed 42."""
    mixed = _rotated(number * 0xCC9E2D51, 15) * 0x1B873593
    h = (_rotated(42 ^ mixed & _BITS, 13) * 5 + 0xE6546B64) & _BITS ^ 4
    h = (h ^ h >> 16) * 0x85EBCA6B & _BITS
    h = (h ^ h >> 13) * 0xC2B2AE35 & _BITS
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


def _rotated(number: int, bits: int) -> int:
    low = number & _BITS
    return (low << bits | low >> 32 - bits) & _BITS
