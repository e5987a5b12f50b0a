"""Socket: a connected TCP socket that passes through the scheduler once per response."""

from __future__ import annotations

import select
import socket

import trio

__all__ = ["Socket"]

_CHUNK = 64 * 1024
_NOTHING = memoryview(b"")


class Socket:
    """A TCP connection without the checkpoints that a request does not need.

    `trio.SocketStream` makes a checkpoint for every send, even if the kernel takes the data at once. A request is
    always followed by a wait for its response, so `send_now` makes none. `receive_some` always makes one: it waits
    until there is something to read, instead of trying a read that would almost always fail.

    Args:
        connected: The result of `trio.open_tcp_stream`. Its file descriptor is taken over.

    Attributes:
        has_clean_end: Whether an end of the stream is known to be the server's. In TCP it always is, as far as anyone
            can know; in TLS see `TlsStream`.
    """

    has_clean_end = True

    def __init__(self, connected: trio.SocketStream) -> None:
        self._socket = socket.socket(fileno=connected.socket.detach())
        self._socket.settimeout(0)
        self._arrivals = select.poll()
        self._arrivals.register(self._socket, select.POLLIN)
        self._unsent = _NOTHING

    @property
    def is_open(self) -> bool:
        """Whether this side has not closed it."""
        return self._socket.fileno() >= 0

    def send_now(self, data: bytes) -> bool:
        """Send what the kernel takes, without waiting. False: call `drain`, which sends the rest.

        Raises:
            trio.BrokenResourceError: The other side has closed.
            trio.ClosedResourceError: This side has.
        """
        try:
            sent = self._socket.send(data)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            raise self._broken(error) from error
        self._unsent = memoryview(data)[sent:] if sent < len(data) else _NOTHING
        return sent == len(data)

    def push(self) -> bool:
        """Send what the kernel takes of the rest; whether nothing of it is left. Raises as `send_now`."""
        try:
            while self._unsent:
                self._unsent = self._unsent[self._socket.send(self._unsent) :]
        except BlockingIOError:
            return False
        except OSError as error:
            raise self._broken(error) from error
        return True

    async def drain(self) -> None:
        """Wait until all data is sent. Raises as `send_now`."""
        while not self.push():
            await self.wait_writable()

    async def wait_writable(self) -> None:
        """Wait until the kernel takes more."""
        await trio.lowlevel.wait_writable(self._socket)

    async def receive_some(self) -> bytes:
        """The next bytes, as soon as there are some; `b""` at the end.

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
                continue  # the kernel may wake a reader for nothing

    def receive_now(self) -> bytes:
        """The bytes that have arrived; `b""` at the end. Raises as `receive_some`.

        Raises:
            BlockingIOError: There are none.
        """
        try:
            return self._socket.recv(_CHUNK)
        except BlockingIOError:
            raise
        except OSError as error:
            raise self._broken(error) from error

    def is_silent(self) -> bool:
        """Whether the connection is open, and nothing has arrived, neither bytes nor the end."""
        return self._socket.fileno() >= 0 and not self._arrivals.poll(0)

    def close(self) -> None:
        """Close it, at once. A task that waits for it gets a `trio.ClosedResourceError`. Idempotent."""
        if self.is_open:
            trio.lowlevel.notify_closing(self._socket)
            self._socket.close()

    def abandon(self) -> None:
        """Close this process's descriptor and nothing else: a parent process goes on with the connection."""
        self._socket.close()

    def _broken(self, error: OSError) -> Exception:
        if not self.is_open:
            return trio.ClosedResourceError("this side has closed the connection")
        return trio.BrokenResourceError(str(error))
