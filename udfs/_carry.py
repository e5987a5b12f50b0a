"""The carry: input rows that wait, as Arrow, for the results that will stand beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from ._rows import Row

__all__ = ["Carry"]


@dataclass(slots=True)
class _Held:
    batch: pa.RecordBatch
    missing: int


class Carry:
    """Keeps each input batch until the last of its rows has come out. Nothing is turned into Python."""

    def __init__(self) -> None:
        self._held: dict[int, _Held] = {}
        self._next = 0

    def add(self, batch: pa.RecordBatch) -> int:
        """Keep the batch; its number."""
        number = self._next
        self._next += 1
        self._held[number] = _Held(batch, batch.num_rows)
        return number

    def take(self, rows: Sequence[Row], copies: Sequence[int] | None = None) -> pa.RecordBatch:
        """The input rows of these rows, in the same order, each as often as `copies` says (None: once)."""
        picked: dict[int, list[int]] = {}
        place: list[tuple[int, int]] = []
        for position, row in enumerate(rows):
            indices = picked.setdefault(row.batch, [])
            for _ in range(1 if copies is None else copies[position]):
                place.append((row.batch, len(indices)))
                indices.append(row.index)
        parts = {
            number: self._held[number].batch.take(pa.array(indices, pa.int64())) for number, indices in picked.items()
        }
        self._release(rows)
        if len(parts) == 1 or not place:
            return next(iter(parts.values()))
        return _in_order(parts, place)

    def _release(self, rows: Sequence[Row]) -> None:
        for row in rows:
            held = self._held[row.batch]
            held.missing -= 1
            if not held.missing:
                del self._held[row.batch]


def _in_order(parts: dict[int, pa.RecordBatch], place: list[tuple[int, int]]) -> pa.RecordBatch:
    start: dict[int, int] = {}
    total = 0
    for number, part in parts.items():
        start[number] = total
        total += part.num_rows
    joined = pa.Table.from_batches(list(parts.values())).combine_chunks()
    order = pa.array([start[number] + index for number, index in place], pa.int64())
    return joined.take(order).combine_chunks().to_batches()[0]
