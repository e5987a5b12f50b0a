"""IPC: a record batch as one binary value, which Spark passes on without reading the user's types."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from ..slices import slices

__all__ = ["from_payload", "in_payloads", "to_payload"]

# Spark sends and holds each value as a whole.
MAX_ROWS = 1_000


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


def in_payloads(batch: pa.RecordBatch) -> Iterator[bytes]:
    """The batch as payloads with a limited number of rows and bytes; none for an empty batch."""
    for start in range(0, batch.num_rows, MAX_ROWS):
        yield from map(to_payload, slices(batch.slice(start, MAX_ROWS)))
