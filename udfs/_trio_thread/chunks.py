"""Groups the operator's results into chunks for Spark's thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import trio

from trio_asyncio_io import Results, StreamRecord

from .._sent.row import Row
from .recorded import RecordedResults

__all__ = ["send_chunks"]

# A chunk is sent when it has this many rows or its first row is this old. The first chunks are smaller: a chunk does
# not wait for more rows than all chunks before it had together.
CHUNK_ROWS = 512
LINGER_SECONDS = 0.01


async def send_chunks(results: Results[Any] | RecordedResults, send: Callable[[list[Row]], None]) -> None:
    """Receive all results and send their rows in chunks. When cancelled, send the rows received so far."""
    received = 0
    try:
        while True:
            chunk = [await results.receive()]
            try:
                with trio.move_on_after(LINGER_SECONDS):
                    await _fill(chunk, results, min(received, CHUNK_ROWS))
            finally:
                if rows := _rows_in(chunk):
                    send(rows)
            received += len(chunk)
    except trio.EndOfChannel:
        pass


async def _fill(chunk: list[Any], results: Results[Any] | RecordedResults, wanted: int) -> None:
    """Add results that are ready, up to a full chunk. Wait only while the chunk has fewer than `wanted`."""
    while len(chunk) < CHUNK_ROWS:
        try:
            chunk.append(results.receive_nowait())
        except trio.WouldBlock:
            if len(chunk) >= wanted:
                return
            chunk.append(await results.receive())


def _rows_in(chunk: list[Any]) -> list[Row]:
    """The rows without watermarks and timestamps."""
    if all(isinstance(item, Row) for item in chunk):
        return chunk
    return [item.value for item in chunk if isinstance(item, StreamRecord)]
