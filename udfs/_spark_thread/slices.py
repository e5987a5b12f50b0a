"""Slices: Arrow data in parts that are small enough to send."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TypeVar

import pyarrow as pa

__all__ = ["SLICE_BYTES", "ranges", "slices"]

# An Arrow array of strings holds 2 GiB at most, and Spark's JVM loads each record batch as a whole.
SLICE_BYTES = 64 * 1024 * 1024

ArrowT = TypeVar("ArrowT", pa.Array, pa.RecordBatch)


def slices(data: ArrowT) -> Iterator[ArrowT]:
    """The data in slices of about equal numbers of rows, each at most about `SLICE_BYTES`. Copies nothing."""
    parts = min(-(-data.nbytes // SLICE_BYTES), len(data)) or 1
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
