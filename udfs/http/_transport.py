"""StackTransport: an httpx transport that sends each request on a connection of its pool.

`BoundedTransport` goes around any transport of httpx and bounds how its responses are read.
"""

from __future__ import annotations

from typing import Any, Final, Self

import httpx

from ._pool import ConnectionPool
from ._request import RequestWriter
from ._response import BoundedResponse, ResponseBody
from ._tls import Certificate, SslContext, Verify, load_verify
from ._url import origin_of_url

# The extension of a request with the response that has already arrived
ANSWERED: Final = "udfs.http.answered"


class StackTransport(httpx.AsyncBaseTransport):
    """An HTTP/1.1 transport that stores idle connections on a last-in-first-out stack per origin.

    The connection that became idle last is reused first, so when there are few requests the others reach
    `keepalive_expiry` and are closed. A connection becomes idle only after its response was read to the end. After an
    error, a cancellation or an incomplete read it is closed. A connection that the server has closed is not reused.

    The server may close an idle connection just as a request is sent on it. If nothing of a response arrives then, an
    idempotent request (RFC 9110, section 9.2.2) whose body is in memory is sent once more, on a new connection.

    **Cancellation** of a request closes its connection and no other.

    Args:
        verify: True for certifi's authorities; the path of a file, or a directory, of other authorities' certificates,
            such as those of a company; an `ssl.SSLContext`; or False for no verification.
        cert: A client certificate, as httpx takes it. None (the default): none.
        trust_env: Whether `SSL_CERT_FILE` and `SSL_CERT_DIR` replace certifi's authorities. False by default.
        max_idle: Upper limit of idle connections over all origins, at least 0, 100 by default. 0: no connection is
            reused.
        keepalive_expiry: Seconds after which an idle connection is closed, at least 0, 5 by default. `math.inf`: never.
        only_public: Whether only hosts with globally routable addresses are connected to. The addresses are checked
            when a connection is opened, and the connection is made to a checked address. A request to another host
            raises a `HostRefusedError`. False by default.

    Raises:
        ValueError: A limit is out of its range, or no certificates can be loaded from `verify`.
    """

    def __init__(
        self,
        *,
        verify: Verify = True,
        cert: Certificate | None = None,
        trust_env: bool = False,
        max_idle: int = 100,
        keepalive_expiry: float = 5.0,
        only_public: bool = False,
    ) -> None:
        ssl_context = SslContext(load_verify(verify), cert, trust_env)
        self.pool: Final = ConnectionPool(ssl_context, max_idle, keepalive_expiry, only_public=only_public)

    async def handle_async_request(self, request: httpx.Request) -> BoundedResponse:
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
            origin = origin_of_url(request.url, request.extensions.get("sni_hostname") or None)
            connection = await self.pool.send(origin, RequestWriter.of(request))
        except httpx.RequestError as error:
            error.request = request
            raise
        return BoundedResponse.received(connection.parser.head, ResponseBody(request, connection, self.pool))

    async def aclose(self) -> None:
        """Close every connection, idle or busy. Requests in flight fail."""
        self.pool.close()


class BoundedTransport(httpx.AsyncBaseTransport):
    """Another transport, whose responses are read as `BoundedResponse` reads them.

    The other transport is opened and closed with this one.

    Args:
        transport: Sends the requests.
        max_body_bytes: Upper limit of a decoded body; `math.inf` for none.
    """

    def __init__(self, transport: httpx.AsyncBaseTransport, max_body_bytes: float) -> None:
        self._transport: Any = transport
        self._max_body_bytes = max_body_bytes

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        return self

    async def __aexit__(self, *details: object) -> None:
        await self._transport.__aexit__(*details)

    async def aclose(self) -> None:
        """Close the transport."""
        await self._transport.aclose()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request, unless its response is among its extensions."""
        answered: BoundedResponse | None = request.extensions.pop(ANSWERED, None)
        return await self.answer(request) if answered is None else answered

    async def answer(self, request: httpx.Request) -> BoundedResponse:
        """Send a request and return its response.

        Raises:
            httpx.RequestError: The request failed.
            BodyTooLargeError: The transport has read the body, and it is larger than the limit.
        """
        try:
            received = await self._transport.handle_async_request(request)
            response = received if isinstance(received, BoundedResponse) else BoundedResponse.of(received)
            response.max_body_bytes = self._max_body_bytes
            if response.is_closed:
                response.check_content()
        except httpx.RequestError as error:
            error.request = request
            raise
        return response
