"""The output buffer: enriched rows leave the worker before its thread waits for more."""

from __future__ import annotations

from io import BufferedWriter

from .daemon import local_of_daemon
from .hangup import HangUpError

__all__ = ["OutputBuffer"]


class OutputBuffer:
    """PySpark's buffer of this worker's output.

    PySpark sends it when it is full (`spark.buffer.size`, 64 KiB) or the task ends. Until then Spark does not see
    the rows, and a `limit` that has enough of them does not end the calls.

    Create it in the task's own thread. Where PySpark's buffer is not found, as outside of a worker, it has no effect.
    """

    def __init__(self) -> None:
        self._stream = local_of_daemon("outfile", BufferedWriter)

    def flush(self) -> None:
        """Send what Spark's thread has written so far.

        Raises:
            HangUpError: Spark has closed the connection.
        """
        if self._stream is not None:
            try:
                self._stream.flush()
            except OSError as error:
                raise HangUpError("Spark has closed the connection to this worker") from error
