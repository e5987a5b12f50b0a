"""Batches: Arrow data in small slices or as bytes, and the input rows that have not been written yet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa

from .._sent.row import Row

# A batch that is smaller than this is not copied to free a part of it.
_SMALL_BYTES: Final = 16 * 1024

# This much data always fits into one array, whose limit is 2 GiB. For more, the size of each row is added up.
SAFE_BYTES: Final = 256 * 1024 * 1024

# The limit of an Arrow array of strings is 2 GiB, and Spark's JVM loads each record batch as a whole.
SLICE_BYTES: Final = 64 * 1024 * 1024

ArrowT = TypeVar("ArrowT", pa.Array, pa.RecordBatch)


def slices(data: ArrowT) -> Iterator[ArrowT]:
    """The data in slices of about equal numbers of rows, each at most about `SLICE_BYTES`. Copies nothing."""
    return even_slices(data, min(-(-data.nbytes // SLICE_BYTES), len(data)) or 1)


def even_slices(data: ArrowT, parts: int) -> Iterator[ArrowT]:
    """The data in this many slices of about equal numbers of rows. Copies nothing."""
    edges = [len(data) * part // parts for part in range(parts + 1)]
    for start, end in pairwise(edges):
        yield data.slice(start, end - start)


def ranges(sizes: Sequence[int], limit: int = SLICE_BYTES) -> Iterator[tuple[int, int]]:
    """Ranges of positions whose sizes add up to at most `limit`. A position with a larger size has its own range."""
    start = total = 0
    for position, size in enumerate(sizes):
        if position > start and total + size > limit:
            yield start, position
            start, total = position, 0
        total += size
    if sizes:
        yield start, len(sizes)


def to_payload(batch: pa.RecordBatch) -> bytes:
    """The batch as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())


def from_payload(payload: bytes | pa.Buffer) -> pa.RecordBatch:
    """The batch in an Arrow IPC stream."""
    with pa.ipc.open_stream(payload) as stream:
        return stream.read_next_batch()


def as_payloads(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A batch of one row for each batch: its payload."""
    for batch in batches:
        yield pa.RecordBatch.from_arrays([pa.array([to_payload(batch)], pa.binary())], names=["payload"])


class _HeldBatch:
    """A batch, and the position in `batch` of each row that is not released, by the row's index."""

    __slots__ = ("batch", "nbytes", "positions")

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.positions = {index: index for index in range(batch.num_rows)}
        self.batch = batch
        self.nbytes = batch.nbytes

    def nbytes_of(self, index: int) -> int:
        """The size of one row, in bytes."""
        size: int = self.batch.slice(self.positions[index], 1).nbytes
        return size

    def take(self, indices: Sequence[int]) -> pa.RecordBatch:
        """The rows with these indices. Rows that follow each other are not copied."""
        positions = [self.positions[index] for index in indices]
        first = positions[0]
        if positions == list(range(first, first + len(positions))):
            return self.batch.slice(first, len(positions))
        return self.batch.take(pa.array(positions, pa.int64()))

    def compact(self) -> None:
        """Drop the released rows once they are half of the batch, so that a straggler does not keep all of it."""
        if self.nbytes < _SMALL_BYTES or 2 * len(self.positions) > self.batch.num_rows:
            return
        self.batch = self.batch.take(pa.array(list(self.positions.values()), pa.int64()))
        self.nbytes = self.batch.nbytes
        self.positions = {index: position for position, index in enumerate(self.positions)}


class InputBatches:
    """Holds the rows of each input batch until they are released. No value is converted to Python."""

    def __init__(self) -> None:
        self._held: dict[int, _HeldBatch] = {}
        self._next_number = 0

    def add(self, batch: pa.RecordBatch) -> int:
        """Hold the batch. Returns its number."""
        number = self._next_number
        self._next_number += 1
        self._held[number] = _HeldBatch(batch)
        return number

    def take(self, rows: Sequence[Row], repeats: int = 1) -> Iterator[pa.RecordBatch]:
        """The input of these rows, in the same order.

        Yields one record batch, several where one could become too large for Arrow's arrays, or none for no rows.

        Args:
            rows: Rows that are not released.
            repeats: The most times that one row is among them.
        """
        for start, end in ranges(self._sizes(rows, repeats)):
            yield self._taken(rows[start:end])

    def release(self, rows: Sequence[Row]) -> None:
        """Drop these rows."""
        for row in rows:
            del self._held[row.batch].positions[row.index]
        for number in {row.batch for row in rows}:
            held = self._held[number]
            if held.positions:
                held.compact()
            else:
                del self._held[number]

    def _sizes(self, rows: Sequence[Row], repeats: int) -> list[int]:
        """Bytes of each row. Zeros if the rows cannot exceed `SAFE_BYTES` together, because counting takes time."""
        nbytes = repeats * sum(self._held[number].nbytes for number in {row.batch for row in rows})
        if nbytes <= SAFE_BYTES:
            return [0] * len(rows)
        return [self._held[row.batch].nbytes_of(row.index) for row in rows]

    def _taken(self, rows: Sequence[Row]) -> pa.RecordBatch:
        if len({row.batch for row in rows}) == 1:
            return self._held[rows[0].batch].take([row.index for row in rows])
        by_batch = sorted(range(len(rows)), key=lambda place: rows[place].batch)
        parts = [
            self._held[number].take([rows[place].index for place in places])
            for number, places in groupby(by_batch, lambda place: rows[place].batch)
        ]
        joined = pa.Table.from_batches(parts).combine_chunks()
        return joined.take(np.argsort(by_batch)).combine_chunks().to_batches()[0]  # in the order of the rows again
