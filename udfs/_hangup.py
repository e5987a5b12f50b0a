"""The hang-up: how a worker learns that Spark has gone, while it is busy waiting.

When a task is cancelled or `limit` has enough, Spark closes the socket to the worker, which would learn of it
at its next write only; until then its calls would go on. The kernel knows at once (POLLRDHUP).
"""

from __future__ import annotations

import select
import socket
import sys
from types import FrameType

import trio

__all__ = ["HangUpError", "until_hangup", "worker_socket"]

DAEMON = "pyspark.daemon"
POLL_SECONDS = 0.1


class HangUpError(RuntimeError):
    """Spark has closed the connection to this worker: the task was cancelled, or enough rows were there."""


def worker_socket() -> socket.socket | None:
    """The socket between Spark and this worker, or None where there is none to be found.

    It is a local variable of PySpark's daemon (4.0 to 4.3), which is no public name and runs as `__main__`;
    without it, a blocked worker lives until Spark kills it. Must be called in the task's own thread.
    """
    frame: FrameType | None = sys._getframe()  # noqa: SLF001 - the documented way to walk the stack
    while frame is not None:
        if getattr(frame.f_globals.get("__spec__"), "name", None) == DAEMON:
            found = frame.f_locals.get("sock")
            if isinstance(found, socket.socket):
                return found
        frame = frame.f_back
    return None


async def until_hangup(connection: socket.socket) -> None:
    """Return once the other side has closed the connection, at most 0.1 s later.

    Data that waits to be read is no news, so this polls instead of waiting for readability.
    """
    hangup = getattr(select, "POLLRDHUP", 0x2000) | select.POLLHUP | select.POLLERR
    poll = select.poll()
    poll.register(connection.fileno(), hangup)
    while not poll.poll(0):  # noqa: ASYNC110 - the kernel tells nobody, it can only be asked
        await trio.sleep(POLL_SECONDS)
