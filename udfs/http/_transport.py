"""StackTransport: an httpx transport that sends each request on a connection of its pool."""

from __future__ import annotations

import os
from typing import Final

import httpx

from ._exchange import Exchanger
from ._origin import origin_of
from ._pool import ConnectionPool
from ._request_writer import RequestWriter
from ._response import Response
from ._response_body import ResponseBody
from ._ssl_context import Certificate, SslContext, Verify

__all__ = ["StackTransport"]


class StackTransport(httpx.AsyncBaseTransport):
    """An HTTP/1.1 transport that stores idle connections on a last-in-first-out stack per origin.

    The connection that became idle last is reused first, so when there are few requests the others reach
    `keepalive_expiry` and are closed. A connection becomes idle only after its response was read to the end. After an
    error, a cancellation or an incomplete read it is closed. A connection that the server has closed is not reused.

    The server may close an idle connection just as a request is sent on it. If nothing of a response arrives then, an
    idempotent request (RFC 9110, section 9.2.2) whose body is in memory is sent once more, on a new connection.

    A forked process starts without connections and leaves those of its parent open.

    **Cancellation** of a request closes its connection and no other.

    Args:
        verify: True for certifi's authorities, False for no verification, or an `ssl.SSLContext`. The context takes
            about 100 ms to make, so it is made once, at the first HTTPS request.
        cert: A client certificate, as httpx takes it.
        trust_env: Whether `SSL_CERT_FILE` and `SSL_CERT_DIR` are read.
        max_connections: Upper limit of open connections, idle ones included, at least 1. Further requests wait, up to
            httpx's pool timeout. None: no limit but the operator's capacity.
        max_idle: Upper limit of idle connections over all origins. 0: no connection is reused.
        keepalive_expiry: Seconds after which an idle connection is closed, at least 0. `math.inf`: never.
        retries: Attempts to connect after the first. Leave it at 0 where the operator has a retry strategy, which
            also counts its attempts.
        uds: The path of a Unix socket, to which every request is sent, whatever the host of its URL.

    Raises:
        ValueError: A limit is out of its range.
    """

    def __init__(
        self,
        *,
        verify: Verify = True,
        cert: Certificate | None = None,
        trust_env: bool = False,
        max_connections: int | None = None,
        max_idle: int = 100,
        keepalive_expiry: float = 5.0,
        retries: int = 0,
        uds: str | os.PathLike[str] | None = None,
    ) -> None:
        path = None if uds is None else os.fspath(uds)
        pool = ConnectionPool(max_connections, max_idle, keepalive_expiry, retries, path)
        self.exchanger: Final = Exchanger(SslContext(verify, cert, trust_env=trust_env), pool)

    @property
    def is_watched(self) -> bool:
        """Whether a library, for example of tracing, has put its own function around `handle_async_request`."""
        return "handle_async_request" in vars(self)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and return its response, with the body still unread.

        Args:
            request: A request of httpx's client. Its `timeout` extension applies to each step.

        Returns:
            A response. The caller closes it; httpx's client does so by itself.

        Raises:
            httpx.RequestError: The request is not valid, or the server was unreachable, too slow or broke off.
            RuntimeError: The transport is closed.
        """
        try:
            connection = await self.exchanger.begin(origin_of(request), RequestWriter.of(request))
        except httpx.RequestError as error:
            error.request = request
            raise
        return Response.received(connection.parser.head, ResponseBody(request, connection, self.exchanger.release))

    async def aclose(self) -> None:
        """Close every connection, idle or busy. Requests in flight fail."""
        self.exchanger.close()
