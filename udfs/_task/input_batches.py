"""The carry: input rows that wait, as Arrow, for the results that will stand beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from .._row import Row
from .slices import ranges

__all__ = ["Carry"]

# A smaller batch is not copied to free a part of it.
_SMALL_BYTES: Final = 16 * 1024

# Arrow can put this much into one array, which holds 2 GiB at most, without a look at each row.
_SAFE_BYTES: Final = 256 * 1024 * 1024


class _Held:
    """A batch, and for each of its rows that have not come out: the row's index -> its position in `batch`."""

    __slots__ = ("batch", "nbytes", "positions")

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.positions = {index: index for index in range(batch.num_rows)}
        self._replace(batch)

    def _replace(self, batch: pa.RecordBatch) -> None:
        self.batch = batch
        self.nbytes = batch.nbytes

    def nbytes_at(self, index: int) -> int:
        """The size of one row, in bytes."""
        size: int = self.batch.slice(self.positions[index], 1).nbytes
        return size

    def compact(self) -> None:
        """Drop the rows that have come out, once they are half of the batch: a straggler must not hold all of it."""
        if self.nbytes < _SMALL_BYTES or 2 * len(self.positions) > self.batch.num_rows:
            return
        self._replace(self.batch.take(pa.array(list(self.positions.values()), pa.int64())))
        self.positions = {index: position for position, index in enumerate(self.positions)}


class Carry:
    """Keeps the rows of each input batch until they have come out. Nothing is turned into Python."""

    def __init__(self) -> None:
        self._held: dict[int, _Held] = {}
        self._next = 0

    def add(self, batch: pa.RecordBatch) -> int:
        """Keep the batch; its number."""
        number = self._next
        self._next += 1
        self._held[number] = _Held(batch)
        return number

    def take(self, rows: Sequence[Row], repeats: int = 1) -> Iterator[pa.RecordBatch]:
        """The input rows of these rows, in the same order.

        There is one record batch, or several where one could become too large for Arrow's arrays; none for no rows.

        Args:
            rows: Rows that have not been released.
            repeats: How often one row is among them at most.
        """
        for start, end in ranges(self._sizes(rows, repeats)):
            yield self._taken(rows[start:end])

    def release(self, rows: Sequence[Row]) -> None:
        """Let these rows go: they have come out."""
        for row in rows:
            del self._held[row.batch].positions[row.index]
        for number in {row.batch for row in rows}:
            held = self._held[number]
            if held.positions:
                held.compact()
            else:
                del self._held[number]

    def _sizes(self, rows: Sequence[Row], repeats: int) -> list[int]:
        """Bytes of each row; zeros if no more than `_SAFE_BYTES` can come together, for counting takes time."""
        most = repeats * sum(self._held[number].nbytes for number in {row.batch for row in rows})
        if most <= _SAFE_BYTES:
            return [0] * len(rows)
        return [self._held[row.batch].nbytes_at(row.index) for row in rows]

    def _taken(self, rows: Sequence[Row]) -> pa.RecordBatch:
        picked: dict[int, list[int]] = {}
        place: list[tuple[int, int]] = []
        for row in rows:
            positions = picked.setdefault(row.batch, [])
            place.append((row.batch, len(positions)))
            positions.append(self._held[row.batch].positions[row.index])
        parts = {
            number: self._held[number].batch.take(pa.array(positions, pa.int64()))
            for number, positions in picked.items()
        }
        return next(iter(parts.values())) if len(parts) == 1 else _in_order(parts, place)


def _in_order(parts: dict[int, pa.RecordBatch], place: list[tuple[int, int]]) -> pa.RecordBatch:
    start: dict[int, int] = {}
    total = 0
    for number, part in parts.items():
        start[number] = total
        total += part.num_rows
    joined = pa.Table.from_batches(list(parts.values())).combine_chunks()
    order = pa.array([start[number] + index for number, index in place], pa.int64())
    return joined.take(order).combine_chunks().to_batches()[0]
