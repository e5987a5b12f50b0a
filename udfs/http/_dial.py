"""Dialler: from an origin to a connected stream, with TLS where the scheme requires it."""

from __future__ import annotations

import math
import ssl
from dataclasses import dataclass

import httpx
import trio

from ._origin import Origin
from ._socket import Socket
from ._tls import TlsStream

__all__ = ["Dialler", "Stream"]

Stream = Socket | TlsStream

_FIRST_PAUSE = 0.5  # seconds; the pauses before the retries are 0, 0.5, 1, 2, ..., as httpcore's

# ValueError: a host or a name for TLS that is not valid; OverflowError: a port that is not
_FAILURES = (OSError, ValueError, OverflowError, trio.BrokenResourceError, trio.ClosedResourceError)


@dataclass
class Dialler:
    """Connects to one origin. It owns the stream from the start, so a failed handshake leaves nothing open.

    Attributes:
        origin: What to connect to.
        ssl_context: For TLS, or None.
        retries: Attempts after the first.
        uds: The path of a Unix socket, to which it connects whatever the origin is; None for TCP.
        stream: The stream of the last attempt, or None before the first.
    """

    origin: Origin
    ssl_context: ssl.SSLContext | None
    retries: int
    uds: str | None = None
    stream: Stream | None = None

    async def connect(self, seconds: float | None) -> Stream:
        """Return a connected stream.

        **Cancellation** leaves the stream open until `close`.

        Args:
            seconds: Upper limit for each attempt; None for no limit.

        Raises:
            httpx.ConnectError, httpx.ConnectTimeout: The last attempt failed.
        """
        pause = 0.0
        for _ in range(self.retries):
            try:
                return await self._attempt(seconds)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                await trio.sleep(pause)
            pause = pause * 2 or _FIRST_PAUSE
        return await self._attempt(seconds)

    def close(self) -> None:
        """Close the stream, if there is one, without waiting."""
        if self.stream is not None:
            self.stream.close()

    async def _attempt(self, seconds: float | None) -> Stream:
        try:
            with trio.move_on_after(math.inf if seconds is None else seconds):
                return await self._open()
        except _FAILURES as error:
            self.close()
            place = "" if self.uds is None else f"{self.uds}: "
            raise httpx.ConnectError(place + _message(error)) from error
        self.close()
        raise httpx.ConnectTimeout(f"connect timeout of {seconds} s")

    async def _open(self) -> Stream:
        host, port = self.origin.host.decode(), self.origin.port
        if self.uds is None:
            socket = self.stream = Socket(await trio.open_tcp_stream(host, port))
        else:
            socket = self.stream = Socket(await trio.open_unix_socket(self.uds))
        if self.ssl_context is None:
            return socket
        tls = self.stream = TlsStream(socket, self.ssl_context, self.origin.server_name or host)
        await tls.handshake()
        return tls


def _message(error: BaseException) -> str:
    """Return the text of the first error in the chain that has one."""
    cause: BaseException | None = error
    while cause is not None and not str(cause):
        cause = cause.__cause__
    return str(cause or type(error).__name__)
