"""The buckets: how rows are spread over the tasks of the stateful stage, one bucket to the task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from ._payload import to_payload

__all__ = ["Buckets", "bucket_ids"]

# A place is the number of a partition, and below it that of a slice in this partition.
SLICES = 1 << 40


@dataclass(frozen=True, slots=True)
class Buckets:
    """Cuts record batches into slices, one row for each: its bucket, its place in the order of the input, its payload.

    What is cut depends on the partition and its rows alone: a task that Spark repeats cuts the same.

    Args:
        ids: The buckets' numbers.
        by_last_column: True: the last column says to which bucket a row belongs, as an index into `ids`, and is
            dropped. False: rows go round.
    """

    ids: tuple[int, ...]
    by_last_column: bool = False

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
            parts = dict(self._by_column(batch) if self.by_last_column else self._in_turn(batch, turn))
            turn += len(parts)
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array([self.ids[each] for each in parts], pa.int32()),
                    pa.array([next(places) for _ in parts], pa.int64()),
                    pa.array([to_payload(part) for part in parts.values()], pa.binary()),
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

    def _by_column(self, batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        *columns, chosen = batch.columns
        rows = pa.RecordBatch.from_arrays(columns, names=batch.schema.names[:-1])
        for each in sorted(pc.unique(chosen).to_pylist()):
            yield each, rows.filter(pc.equal(chosen, each))


def bucket_ids(session: Any, partitions: int) -> tuple[int, ...]:
    """A number for each partition of the stateful stage, such that Spark's hash puts it there.

    With the numbers from 0 on, some partitions would have several buckets and others none.
    """
    found: dict[int, int] = {}
    for start, end in _spans(partitions):
        numbers = session.range(start, end, 1, 1).selectExpr(
            "cast(id as int) as id", f"pmod(hash(cast(id as int)), {partitions}) as place"
        )
        for row in numbers.collect():
            found.setdefault(row.place, row.id)
        if len(found) == partitions:
            break
    return tuple(found[place] for place in sorted(found))


def _spans(partitions: int) -> Iterator[tuple[int, int]]:
    """Ranges of numbers to try, one behind the other."""
    size = 16 * partitions
    return ((start, start + size) for start in count(0, size))
