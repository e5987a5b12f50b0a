"""Flushes PySpark's output buffer, so that Spark receives rows before the worker waits for more."""

from __future__ import annotations

from io import BufferedWriter

from .._trio_thread.hangup import HangUpError
from .daemon import local_of_daemon

__all__ = ["OutputBuffer"]


class OutputBuffer:
    """The buffer of this worker's output.

    PySpark sends the buffer when it is full (`spark.buffer.size`, 64 KiB) or the task ends. Until then Spark does not
    receive the rows, and a `limit` does not end the calls.

    Create it in Spark's thread. If PySpark's buffer is not found, as outside a worker, `flush` has no effect.
    """

    def __init__(self) -> None:
        self._stream = local_of_daemon("outfile", BufferedWriter)

    def flush(self) -> None:
        """Send the output that Spark's thread has written so far.

        Raises:
            HangUpError: Spark has closed the connection.
        """
        if self._stream is not None:
            try:
                self._stream.flush()
            except OSError as error:
                raise HangUpError("Spark has closed the connection to this worker") from error
