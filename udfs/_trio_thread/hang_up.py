"""Hang-up: waits until Spark closes its connection to the worker."""

from __future__ import annotations

import select
import socket
import sys

import trio

# Between two looks at a connection, where the kernel has no epoll
POLL_SECONDS = 0.1


async def until_hangup(connection: socket.socket) -> None:
    """Return when the peer has closed the connection: immediately on Linux, within 0.1 s elsewhere.

    Spark closes the connection when a task is cancelled or a `limit` has enough rows. The worker's next write would be
    the first to fail, and calls would continue until then. Unread data make the socket readable, too, so this waits for
    the kernel's event for a hang-up.
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
