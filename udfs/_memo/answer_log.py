"""Answer log: writes the answers of a task in a thread of its own, while calls are running."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Final, Self

import pyarrow as pa

__all__ = ["AnswerLog"]

MAX_ROWS: Final = 10_000


class AnswerLog:
    """Collects answers and writes them together, at most `every` seconds after the first of them.

    Used as a context manager. Leaving the block, also with an exception, writes the rest.

    Args:
        write: Writes answers. Called in the thread of the log.
        every: Seconds, at least 0.
    """

    def __init__(self, write: Callable[[list[pa.Table]], None], every: float) -> None:
        self._write = write
        self._every = every
        self._queue: SimpleQueue[pa.Table | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
        if error is None:
            self._raise_error()

    def add(self, answers: pa.Table) -> None:
        """Write these answers soon.

        Raises:
            Exception: Earlier answers could not be written.
        """
        self._raise_error()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="udfs-memo", daemon=True)
            self._thread.start()
        self._queue.put(answers)

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        has_more = True
        try:
            while has_more and (first := self._queue.get()) is not None:
                tables = [first]
                has_more = self._collect(tables)
                self._write(tables)
        except BaseException as error:  # noqa: BLE001 - it is raised in Spark's thread
            self._error = error

    def _collect(self, tables: list[pa.Table]) -> bool:
        """Wait for more answers, until the time is over, there are enough, or the task has ended: False then."""
        end = time.monotonic() + self._every
        rows = tables[0].num_rows
        while rows < MAX_ROWS:
            try:
                table = self._queue.get(timeout=max(0.0, end - time.monotonic()))
            except Empty:
                break
            if table is None:
                return False
            tables.append(table)
            rows += table.num_rows
        return True
