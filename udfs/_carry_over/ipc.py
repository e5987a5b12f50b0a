"""The payload: a record batch as one binary value, so that nothing on its way looks at the user's types."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from .._task.slices import slices

__all__ = ["from_payload", "in_payloads", "to_payload"]

# Spark moves a value as a whole, in messages and in memory.
MOST_ROWS = 1_000


def to_payload(batch: pa.RecordBatch) -> bytes:
    """The batch as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())


def from_payload(payload: bytes | pa.Buffer) -> pa.RecordBatch:
    """The batch that these bytes were made of."""
    with pa.ipc.open_stream(payload) as stream:
        return stream.read_next_batch()


def in_payloads(batch: pa.RecordBatch) -> Iterator[bytes]:
    """The batch in payloads of a bounded number of rows and of bytes; none for an empty one."""
    for start in range(0, batch.num_rows, MOST_ROWS):
        yield from map(to_payload, slices(batch.slice(start, MOST_ROWS)))
