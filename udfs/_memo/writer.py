"""Writer: the answers of a task on their way to the disk."""

from __future__ import annotations

import logging
import os
import threading
import time
from types import TracebackType
from typing import Final, Self

import pyarrow as pa

from .directory import Directory, File, MemoError
from .format import frame, log_start
from .merge import rewrite

# A log ends with the first of these, and the next answers begin another one. Objects are shorter, because each part of
# such a log writes all of it again.
LOG_BYTES: Final = 16 * 2**20
OBJECT_BYTES: Final = 2 * 2**20
LOG_SECONDS: Final = 600.0

logger = logging.getLogger("udfs")


class Writer:
    """Appends answers to a log, and turns it into a Parquet file at the end.

    Used as a context manager. A thread puts the answers on the disk every now and then, and ends a log that has become
    large or old.

    Args:
        directory: Where to write.
        every: Seconds until an answer is on the disk, at least 0. On an object store, until it is written at all.
        buckets: The buckets that the task may have.
    """

    def __init__(self, directory: Directory, every: float, buckets: range) -> None:
        self._directory = directory
        self._every = every
        self._buckets = buckets
        self._changed = threading.Condition()
        self._log: _Log | None = None
        self._ending: list[_Log] = []  # that another log has replaced; the thread ends them
        self._is_closed = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="udfs-memo", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._thread.join()
        if error is None:
            self._raise_error()

    def add(self, answers: pa.Table) -> None:
        """Write answers. When this returns, a kill of the process does not lose them, unless files cannot grow.

        Raises:
            OSError: They cannot be written, or earlier ones could not be put on the disk.
            ValueError: A bucket belongs to another task.
        """
        self._raise_error()
        if not set(answers.column("bucket").to_pylist()) <= set(self._buckets):
            raise ValueError(f"an answer has a bucket that is not in {self._buckets}: report this as a defect")
        with self._changed:
            if self._log is not None and self._log.is_removed():
                self._end_log()
            if self._log is not None:
                self._append(self._log, answers)
            if self._log is None:
                self._log = _Log(self._directory, self._buckets, answers)
            self._changed.notify()

    def _append(self, log: _Log, answers: pa.Table) -> None:
        """Append answers. If that fails, leave the log: files cannot grow here, as on some mounts of object stores.

        If the disk is full, the next file cannot be written either, and that is an error.
        """
        try:
            log.append(answers)
        except OSError:
            self._end_log()  # its end may be torn, so nothing may follow
            self._directory.can_append = False

    def _end_log(self) -> None:
        """Have the thread end the log, which it may be writing to the disk at this moment."""
        assert self._log is not None
        self._ending.append(self._log)
        self._log = None
        self._changed.notify()

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            while not self._is_closed or self._log is not None or self._ending:
                with self._changed:
                    self._changed.wait_for(lambda: self._is_over() or (self._log and self._log.has_new), LOG_SECONDS)
                    self._changed.wait_for(self._is_over, self._every)
                    if self._log is not None and (self._is_closed or self._log.is_over):
                        self._end_log()
                    log, ending, self._ending = self._log, self._ending, []
                for each in ending:
                    self._finish(each)
                if log is not None:
                    log.flush()
        except BaseException as error:  # noqa: BLE001 - it is raised in the thread of the task
            self._error = error

    def _is_over(self) -> bool:
        """Whether a log ends now."""
        return self._is_closed or bool(self._ending) or (self._log is not None and self._log.is_over)

    def _finish(self, log: _Log) -> None:
        """Put a log on the disk, and turn it into a Parquet file. If that fails, the log counts."""
        try:
            log.flush()
        finally:
            log.close()
        try:
            rewrite(self._directory, [log.file()])
        except FileNotFoundError:
            pass  # a merge took it for the log of a killed task
        except (MemoError, OSError) as error:
            logger.warning("a log of the memo %s could not be merged: %s", self._directory.path, error)


class _Log:
    """A log. Where files cannot grow, each part of it is a new file with all answers so far.

    Args:
        directory: Where to write.
        buckets: The buckets that it may have.
        first: The first answers.

    Attributes:
        has_new: Whether there are answers that are not on the disk.
    """

    def __init__(self, directory: Directory, buckets: range, first: pa.Table) -> None:
        self._directory = directory
        self._buckets = buckets
        self._opened = time.monotonic()
        self._salt = os.urandom(8)
        self._content = bytearray(log_start(self._salt, directory.schema))
        self._descriptor = -1
        self._end = len(self._content)
        self.name = directory.new_log(buckets)
        self.append(first)
        if directory.can_append:
            self.has_new = False
            directory.put(self.name, bytes(self._content))
            try:
                self._descriptor = os.open(directory.at(self.name), os.O_WRONLY)
            except OSError:  # files cannot grow here
                directory.can_append = False
            else:
                self._content.clear()

    @property
    def is_over(self) -> bool:
        """Whether it has to end: it is long, or it would soon count as the log of a killed task."""
        limit = LOG_BYTES if self._directory.can_append else OBJECT_BYTES
        return self._end >= limit or time.monotonic() - self._opened >= LOG_SECONDS

    def is_removed(self) -> bool:
        """Whether a merge has removed it: a log untouched for an hour counts as left by a killed task."""
        return self._descriptor >= 0 and os.fstat(self._descriptor).st_nlink == 0

    def file(self) -> File:
        """The file as it is in a listing."""
        return File(self.name, self._directory.digest, self._buckets, None, self._end)

    def append(self, answers: pa.Table) -> None:
        """Add answers."""
        for batch in answers.combine_chunks().to_batches():
            added = frame(self._salt, batch.serialize())
            if self._descriptor < 0:
                self._content += added
            else:
                done = 0
                while done < len(added):
                    done += os.pwrite(self._descriptor, added[done:], self._end + done)
            self._end += len(added)
        self.has_new = True

    def flush(self) -> None:
        """Put all answers on the disk."""
        if not self.has_new:
            return
        self.has_new = False  # before, because answers may come meanwhile
        if self._descriptor >= 0:
            with self._directory.writing():
                os.fsync(self._descriptor)
        else:
            before, name = self.name, self._directory.new_log(self._buckets)
            self._directory.put(name, bytes(self._content))
            self.name = name
            self._directory.remove(before)

    def close(self) -> None:
        """Release the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
