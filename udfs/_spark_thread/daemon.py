"""Access to local variables of PySpark's daemon, which hold the connection to Spark."""

from __future__ import annotations

import socket
import sys
from types import FrameType
from typing import TypeVar

__all__ = ["local_of_daemon", "worker_socket"]

DAEMON = "pyspark.daemon"

T = TypeVar("T")


def local_of_daemon(name: str, kind: type[T]) -> T | None:
    """A local variable of PySpark's daemon, or None if there is none with this name and type.

    The daemon (PySpark 3.5 to 4.3) runs as `__main__`. Its variables are not a public interface, so callers must work
    without them. Call this in Spark's thread.
    """
    frame: FrameType | None = sys._getframe()  # noqa: SLF001 - the documented way to walk the stack
    while frame is not None:
        if getattr(frame.f_globals.get("__spec__"), "name", None) == DAEMON:
            found = frame.f_locals.get(name)
            if isinstance(found, kind):
                return found
        frame = frame.f_back
    return None


def worker_socket() -> socket.socket | None:
    """The socket between Spark and this worker, or None if it is not found.

    Without it, a worker that waits for results runs until Spark kills it. Call this in Spark's thread.
    """
    return local_of_daemon("sock", socket.socket)
