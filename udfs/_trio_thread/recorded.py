"""Recorded results: results that are written down before anybody receives them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import trio

from trio_asyncio_io import Results

from .._sent.row import Row

__all__ = ["Record", "RecordedResults", "record_in_thread"]

Record = Callable[[list[Row]], None]

# Upper limit of the rows that are recorded together.
MAX_ROWS = 512


class RecordedResults:
    """The results of an operator, each of which has been recorded.

    Group commit: at most one call of `record` at a time, in a thread; the results that arrive meanwhile are recorded
    together by the next.

    Args:
        results: The operator's.
        record: Records rows. What it raises is raised by `receive`.
    """

    def __init__(self, results: Results[Any], record: Record) -> None:
        self._results = results
        self._record = record
        self._recorded: deque[Row] = deque()

    async def receive(self) -> Row:
        """The next row.

        Raises:
            trio.EndOfChannel: All rows have been received.

        Cancellation: did not happen. A row that was being recorded is the next one.
        """
        if not self._recorded:
            rows = [await self._results.receive()]
            rows += self._ready(MAX_ROWS - 1)
            await record_in_thread(self._record, rows)
            self._recorded.extend(rows)
        return self._recorded.popleft()

    def receive_nowait(self) -> Row:
        """The next row that is recorded already.

        Raises:
            trio.WouldBlock: There is none.
        """
        if not self._recorded:
            raise trio.WouldBlock
        return self._recorded.popleft()

    def _ready(self, limit: int) -> list[Row]:
        rows: list[Row] = []
        try:
            while len(rows) < limit:
                rows.append(self._results.receive_nowait())
        except (trio.WouldBlock, trio.EndOfChannel):
            pass
        return rows


async def record_in_thread(record: Record, rows: list[Row]) -> None:
    """Record rows in a thread, to the end, even in a cancelled scope."""
    with trio.CancelScope(shield=True):
        await trio.to_thread.run_sync(record, rows)
