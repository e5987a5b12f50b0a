"""Answer log: the answers of a task on their way to the files of the memo."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

import pyarrow as pa

from .journal import Journal

__all__ = ["AnswerLog"]

MAX_ROWS: Final = 10_000
TIDY_EVERY: Final = 100


class AnswerLog:
    """Collects answers and writes them together, at most `every` seconds after the first of them.

    Meanwhile they are in a journal, so a process that is killed does not lose them. They are written in a thread of the
    log. Used as a context manager. Leaving the block, also with an exception, writes the rest.

    Args:
        write: Writes answers. Called in the thread of the log.
        every: Seconds, at least 0.
        open_journal: Makes a journal with its first answers; None if the file system has none.
        tidy: Merges small files if there are many. Called in the thread of the log, after its last file and each 100.
    """

    def __init__(
        self,
        write: Callable[[list[pa.Table]], object],
        every: float,
        open_journal: Callable[[pa.Table], Journal | None] = lambda _: None,
        tidy: Callable[[], None] = lambda: None,
    ) -> None:
        self._write = write
        self._every = every
        self._open_journal = open_journal
        self._tidy = tidy
        self._changed = threading.Condition()
        self._tables: list[pa.Table] = []
        self._rows = 0
        self._journal: Journal | None = None
        self._is_closed = False
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self._thread is not None:
            with self._changed:
                self._is_closed = True
                self._changed.notify()
            self._thread.join()
        if error is None:
            self._raise_error()

    def add(self, answers: pa.Table) -> None:
        """Write these answers to the journal now, and to a file soon.

        Raises:
            Exception: Earlier answers could not be written.
            OSError: The journal cannot be written.
        """
        self._raise_error()
        with self._changed:
            if not self._tables:
                self._journal = self._open_journal(answers)
            elif self._journal is not None:
                self._journal.append(answers)
            self._tables.append(answers)
            self._rows += answers.num_rows
            self._changed.notify()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="udfs-memo", daemon=True)
            self._thread.start()

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        files = 0
        try:
            while collected := self._collected():
                tables, journal = collected
                self._write(tables)
                if journal is not None:
                    journal.remove()
                files += 1
                if files % TIDY_EVERY == 0:
                    self._tidy()
            self._tidy()
        except BaseException as error:  # noqa: BLE001 - it is raised in Spark's thread
            self._error = error

    def _collected(self) -> tuple[list[pa.Table], Journal | None] | None:
        """Wait until the time is over, there are enough answers, or the task has ended. None: there are no more."""
        with self._changed:
            self._changed.wait_for(lambda: self._tables or self._is_closed)
            self._changed.wait_for(lambda: self._is_closed or self._rows >= MAX_ROWS, self._every)
            collected = (self._tables, self._journal) if self._tables else None
            self._tables, self._journal, self._rows = [], None, 0
            return collected
