"""Socket: a connected TCP socket with one turn of the scheduler per answer."""

from __future__ import annotations

import select
import socket

import trio

__all__ = ["Socket"]

_CHUNK = 64 * 1024


class Socket(trio.abc.Stream):
    """A TCP stream as Trio's own, except in what costs a turn of the scheduler.

    `trio.SocketStream` takes a turn for every send, even one that the kernel takes at once. A request is always
    followed by a wait for its answer, so `send_now` takes none, and `receive_some` always takes one: it waits until
    there is something to read, and does not try first what would almost always fail.

    Args:
        connected: What `trio.open_tcp_stream` gave. Its file descriptor is taken over.
    """

    def __init__(self, connected: trio.SocketStream) -> None:
        self._socket = socket.socket(fileno=connected.socket.detach())
        self._socket.settimeout(0)
        self._arrivals = select.poll()
        self._arrivals.register(self._socket, select.POLLIN)

    def send_now(self, data: bytes | memoryview) -> int:
        """The number of bytes that the kernel takes at once, maybe 0. This does not wait.

        Raises:
            trio.BrokenResourceError: The other side has closed.
            trio.ClosedResourceError: This side has.
        """
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise self._broken(error) from error

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send everything.

        Raises:
            trio.BrokenResourceError: The other side has closed.
            trio.ClosedResourceError: This side has.
        """
        await trio.lowlevel.checkpoint()
        rest = memoryview(data)
        while rest := rest[self.send_now(rest) :]:
            await trio.lowlevel.wait_writable(self._socket)

    async def wait_send_all_might_not_block(self) -> None:
        """Wait until the kernel takes more."""
        await trio.lowlevel.wait_writable(self._socket)

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """What has arrived, once something has; `b""` at the end.

        Raises:
            trio.BrokenResourceError: The connection broke.
            trio.ClosedResourceError: This side has closed it.
        """
        while True:
            if self._socket.fileno() < 0:
                raise trio.ClosedResourceError("this side has closed the connection")
            await trio.lowlevel.wait_readable(self._socket)
            try:
                return self._socket.recv(max_bytes or _CHUNK)
            except BlockingIOError:
                continue  # the kernel may wake a reader for nothing
            except OSError as error:
                raise self._broken(error) from error

    def is_silent(self) -> bool:
        """Whether nothing has arrived, neither bytes nor the end."""
        return not self._arrivals.poll(0)

    def close(self) -> None:
        """Close it, at once. Who waits for it gets a `trio.ClosedResourceError`; a second time nothing happens."""
        if self._socket.fileno() >= 0:
            trio.lowlevel.notify_closing(self._socket)
            self._socket.close()

    async def aclose(self) -> None:
        """`close`, and a checkpoint."""
        self.close()
        await trio.lowlevel.checkpoint()

    def _broken(self, error: OSError) -> Exception:
        if self._socket.fileno() < 0:
            return trio.ClosedResourceError("this side has closed the connection")
        return trio.BrokenResourceError(str(error))
