"""Hang-up detection: notices that Spark has closed its connection while the worker waits for results.

When a task is cancelled or a `limit` has enough rows, Spark closes the worker's socket. Without this, the worker would
notice it only at its next write, and calls would continue until then. The kernel reports it immediately (POLLRDHUP).
"""

from __future__ import annotations

import select
import socket
import sys

import trio

__all__ = ["HangUpError", "until_hangup"]

POLL_SECONDS = 0.1


class HangUpError(RuntimeError):
    """Spark has closed the connection to this worker, because the task was cancelled or needs no more rows."""

    __module__ = "udfs"


async def until_hangup(connection: socket.socket) -> None:
    """Return when the peer has closed the connection: immediately on Linux, within 0.1 s elsewhere.

    Unread data make the socket readable, too, so this does not wait for that.
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
    while not poll.poll(0):  # noqa: ASYNC110 - there is no event to wait for
        await trio.sleep(POLL_SECONDS)
