"""Dialling: from an origin to a connected stream, through TLS where the scheme asks for it."""

from __future__ import annotations

import math
import ssl
from dataclasses import dataclass

import httpx
import trio

from ._http_idle import Origin
from ._http_socket import Socket

__all__ = ["Dialler"]

_FIRST_PAUSE = 0.5  # seconds; the pauses before attempts are 0, 0.5, 1, 2, ... as httpcore's

# UnicodeError: a host whose labels are longer than a name server's can be
_FAILURES = (OSError, UnicodeError, trio.BrokenResourceError, trio.ClosedResourceError)


@dataclass
class Dialler:
    """Connects to one origin, and owns the socket from its first moment, whatever becomes of the handshake.

    Attributes:
        origin: Scheme, host and port.
        ssl_context: For an HTTPS origin.
        retries: Attempts after the first.
        socket: Once there is one.
    """

    origin: Origin
    ssl_context: ssl.SSLContext | None
    retries: int
    socket: Socket | None = None

    async def connect(self, request: httpx.Request) -> trio.abc.Stream:
        """A stream to the origin; the attempts follow each other without a limit but their own timeouts.

        Raises:
            httpx.ConnectError, httpx.ConnectTimeout: The last attempt failed.
        """
        pause = 0.0
        for _ in range(self.retries):
            try:
                return await self._attempt(request)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                await trio.sleep(pause)
            pause = pause * 2 or _FIRST_PAUSE
        return await self._attempt(request)

    async def _attempt(self, request: httpx.Request) -> trio.abc.Stream:
        seconds = request.extensions.get("timeout", {}).get("connect")
        try:
            with trio.move_on_after(math.inf if seconds is None else seconds):
                return await self._connected(request.extensions.get("sni_hostname"))
        except _FAILURES as error:
            self.close()
            raise httpx.ConnectError(_message(error)) from error
        self.close()
        raise httpx.ConnectTimeout(f"connect timeout of {seconds} s")

    async def _connected(self, server_name: str | None) -> trio.abc.Stream:
        _, host, port = self.origin
        self.socket = Socket(await trio.open_tcp_stream(host.decode(), port))
        if self.ssl_context is None:
            return self.socket
        stream = trio.SSLStream(self.socket, self.ssl_context, server_hostname=server_name or host.decode())
        await stream.do_handshake()
        return stream

    def close(self) -> None:
        """Close the socket, if there is one, whatever is going on above it. This waits for nobody."""
        if self.socket is not None:
            self.socket.close()


def _message(error: BaseException) -> str:
    cause: BaseException | None = error
    while cause is not None and not str(cause):
        cause = cause.__cause__
    return str(cause or type(error).__name__)
