"""Socket: a connected TCP socket with one checkpoint per response."""

from __future__ import annotations

import select
import socket

import trio

_CHUNK = 64 * 1024
_NOTHING = memoryview(b"")


class Socket:
    """A TCP connection without the checkpoints that a request does not need.

    `trio.SocketStream` makes a checkpoint for every send, even if the kernel takes the data immediately. `send_now`
    makes none, because a request is always followed by a wait for its response. `receive_some` always makes one: it
    waits until the socket is readable, because reading before that would almost always fail.

    Args:
        connected: The result of `trio.open_tcp_stream`. Its file descriptor is taken over.

    Attributes:
        has_clean_end: Whether an end of the stream is known to be the server's. TCP cannot tell, so it is always True;
            for TLS see `TlsStream`.
    """

    has_clean_end = True

    def __init__(self, connected: trio.SocketStream) -> None:
        self._socket = socket.socket(fileno=connected.socket.detach())
        self._socket.settimeout(0)
        self._readable = select.poll()
        self._readable.register(self._socket, select.POLLIN)
        self._unsent = _NOTHING

    @property
    def is_open(self) -> bool:
        """Whether this side has not closed it."""
        return self._socket.fileno() >= 0

    def send_now(self, data: bytes) -> bool:
        """Send what the kernel takes, without waiting. Returns whether that was everything; if not, call `drain`.

        Raises:
            trio.BrokenResourceError: The other side has closed the connection.
            trio.ClosedResourceError: This side has closed it.
        """
        try:
            sent = self._socket.send(data)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            raise self._broken(error) from error
        self._unsent = memoryview(data)[sent:] if sent < len(data) else _NOTHING
        return sent == len(data)

    def flush_now(self) -> bool:
        """Send what the kernel takes of the unsent data. Returns whether that was everything.

        Raises the same errors as `send_now`.
        """
        try:
            while self._unsent:
                self._unsent = self._unsent[self._socket.send(self._unsent) :]
        except BlockingIOError:
            return False
        except OSError as error:
            raise self._broken(error) from error
        return True

    async def drain(self) -> None:
        """Wait until all data is sent. Raises the same errors as `send_now`."""
        while not self.flush_now():
            await self.wait_writable()

    async def wait_writable(self) -> None:
        """Wait until the kernel takes more data."""
        await trio.lowlevel.wait_writable(self._socket)

    async def receive_some(self) -> bytes:
        """Wait for data and return it; `b""` at the end.

        Raises:
            trio.BrokenResourceError: The connection broke.
            trio.ClosedResourceError: This side has closed it.
        """
        while True:
            if not self.is_open:
                raise trio.ClosedResourceError("this side has closed the connection")
            await trio.lowlevel.wait_readable(self._socket)
            try:
                return self.receive_now()
            except BlockingIOError:
                continue  # a spurious wake-up

    def receive_now(self) -> bytes:
        """Return the data that has arrived; `b""` at the end. Raises the same errors as `receive_some`.

        Raises:
            BlockingIOError: Nothing has arrived.
        """
        try:
            return self._socket.recv(_CHUNK)
        except BlockingIOError:
            raise
        except OSError as error:
            raise self._broken(error) from error

    def is_silent(self) -> bool:
        """Whether the connection is open, and neither data nor the end has arrived."""
        return self._socket.fileno() >= 0 and not self._readable.poll(0)

    def close(self) -> None:
        """Close it without waiting. Idempotent. A task that waits for it gets a `trio.ClosedResourceError`."""
        if self.is_open:
            trio.lowlevel.notify_closing(self._socket)
            self._socket.close()

    def _broken(self, error: OSError) -> Exception:
        if not self.is_open:
            return trio.ClosedResourceError("this side has closed the connection")
        return trio.BrokenResourceError(str(error))
