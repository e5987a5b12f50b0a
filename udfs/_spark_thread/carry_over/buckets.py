"""Buckets: the distribution of rows over the tasks of the stateful stage, one bucket per task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext

from ..._spark_version import STATE_PARTITIONS
from .ipc import to_payload

__all__ = ["Buckets", "partitions_of_query"]

# The number of slices that one partition can have: the place of a slice is partition * SLICES + its index.
SLICES = 1 << 40


@dataclass(frozen=True, slots=True)
class Buckets:
    """Cuts record batches into slices, one row each: bucket, place in the input order, payload.

    The slices depend on the partition and its rows only, so a repeated task produces the same ones.

    Args:
        ids: The numbers of the buckets.
        names: The names of the columns in the payloads.
        by_hash: True: the last column is a hash that assigns each row to a bucket, and is dropped. False: the rows are
            distributed evenly, round-robin.
    """

    ids: tuple[int, ...]
    names: tuple[str, ...]
    by_hash: bool = False

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The slices of this task's batches."""
        context = TaskContext.get()
        return self.cut(batches, 0 if context is None else context.partitionId())

    def cut(self, batches: Iterator[pa.RecordBatch], partition: int) -> Iterator[pa.RecordBatch]:
        """The slices of a partition's batches, one batch of slices for each."""
        places = count(partition * SLICES)
        first = partition
        for batch in batches:
            if not batch.num_rows:
                continue
            parts = dict(self._by_hash(batch) if self.by_hash else self._evenly(batch, first))
            first += len(parts)
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array([self.ids[index] for index in parts], pa.int32()),
                    pa.array([next(places) for _ in parts], pa.int64()),
                    pa.array([to_payload(part.rename_columns(self.names)) for part in parts.values()], pa.binary()),
                ],
                names=["bucket", "place", "payload"],
            )

    def _evenly(self, batch: pa.RecordBatch, first: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Slices of even size for consecutive buckets, round-robin from `first`."""
        parts = min(len(self.ids), batch.num_rows)
        edges = [batch.num_rows * part // parts for part in range(parts + 1)]
        for part in range(parts):
            start, end = edges[part], edges[part + 1]
            yield (first + part) % len(self.ids), batch.slice(start, end - start)

    def _by_hash(self, batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        *columns, hashes = batch.columns
        rows = pa.RecordBatch.from_arrays(columns, schema=pa.schema(list(batch.schema)[:-1]))
        chosen = pa.array([value % len(self.ids) for value in hashes.to_pylist()], pa.int32())
        for index in sorted(chosen.unique().to_pylist()):
            mask = pc.equal(chosen, index)  # pyright: ignore[reportAttributeAccessIssue] - made at import
            yield index, rows.filter(mask)


def partitions_of_query(planned: int) -> int:
    """The number of partitions of the stateful stage, in a task of the query; `planned` if Spark does not report it."""
    context = TaskContext.get()
    found = (context.getLocalProperty(name) for name in STATE_PARTITIONS) if context is not None else ()
    return next((int(number) for number in found if number), planned)
