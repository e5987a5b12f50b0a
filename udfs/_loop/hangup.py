"""The hang-up: how a worker learns that Spark has gone, while it is busy waiting.

When a task is cancelled or `limit` has enough, Spark closes the socket to the worker, which would learn of it
at its next write only; until then its calls would go on. The kernel knows at once (POLLRDHUP).
"""

from __future__ import annotations

import select
import socket
import sys

import trio

from .daemon import local_of_daemon

__all__ = ["HangUpError", "until_hangup", "worker_socket"]

POLL_SECONDS = 0.1


class HangUpError(RuntimeError):
    """Spark has closed the connection to this worker: the task was cancelled, or enough rows were there."""

    __module__ = "udfs"


def worker_socket() -> socket.socket | None:
    """The socket between Spark and this worker, or None if it is not found.

    Without it, a blocked worker lives until Spark kills it. Call this in the task's own thread.
    """
    return local_of_daemon("sock", socket.socket)


async def until_hangup(connection: socket.socket) -> None:
    """Return once the other side has closed the connection: at once on Linux, else at most 0.1 s later.

    Data that waits to be read is no hang-up, so this does not wait until the socket is readable.
    """
    if sys.platform == "linux":
        with select.epoll() as hangups:
            hangups.register(connection, select.EPOLLRDHUP)
            await trio.lowlevel.wait_readable(hangups.fileno())
    else:
        await _poll(connection)


async def _poll(connection: socket.socket) -> None:
    hangup = getattr(select, "POLLRDHUP", 0x2000) | select.POLLHUP | select.POLLERR
    poll = select.poll()
    poll.register(connection.fileno(), hangup)
    while not poll.poll(0):  # noqa: ASYNC110 - the kernel sends no notice of this, so ask again and again
        await trio.sleep(POLL_SECONDS)
