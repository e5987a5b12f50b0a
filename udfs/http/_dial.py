"""Dialling: from an origin to a connected stream, through TLS where the scheme requires it."""

from __future__ import annotations

import math
import ssl
from dataclasses import dataclass

import httpx
import trio

from ._idle import Origin
from ._socket import Socket
from ._tls import TlsStream

__all__ = ["Dialler", "Stream"]

Stream = Socket | TlsStream

_FIRST_PAUSE = 0.5  # seconds; the pauses before attempts are 0, 0.5, 1, 2, ... as httpcore's

# ValueError: a host or a name for TLS that nobody can have; OverflowError: such a port
_FAILURES = (OSError, ValueError, OverflowError, trio.BrokenResourceError, trio.ClosedResourceError)


@dataclass
class Dialler:
    """Connects to one origin, and owns the stream from its first moment, also if the handshake fails.

    Attributes:
        origin: Scheme, host, port and the name to verify in TLS, if it is not the host.
        ssl_context: For an HTTPS origin.
        retries: Attempts after the first.
        stream: Once there is one.
    """

    origin: Origin
    ssl_context: ssl.SSLContext | None
    retries: int
    stream: Stream | None = None

    async def connect(self, seconds: float | None) -> Stream:
        """A stream to the origin; the attempts follow each other without a limit but their own timeouts.

        Args:
            seconds: For each attempt; None: without a limit.

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

    async def _attempt(self, seconds: float | None) -> Stream:
        try:
            with trio.move_on_after(math.inf if seconds is None else seconds):
                return await self._connected()
        except _FAILURES as error:
            self.close()
            raise httpx.ConnectError(_message(error)) from error
        self.close()
        raise httpx.ConnectTimeout(f"connect timeout of {seconds} s")

    async def _connected(self) -> Stream:
        _, host, port, server_name = self.origin
        socket = self.stream = Socket(await trio.open_tcp_stream(host.decode(), port))
        if self.ssl_context is None:
            return socket
        tls = self.stream = TlsStream(socket, self.ssl_context, server_name or host.decode())
        await tls.handshake()
        return tls

    def close(self) -> None:
        """Close the stream, if there is one. This does not wait."""
        if self.stream is not None:
            self.stream.close()


def _message(error: BaseException) -> str:
    cause: BaseException | None = error
    while cause is not None and not str(cause):
        cause = cause.__cause__
    return str(cause or type(error).__name__)
