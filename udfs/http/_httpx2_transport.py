"""StackTransport for httpx2: requests, responses and errors of httpx2, on the same connections."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable

import httpx
import httpx2

from ._connection import Connection
from ._origin import origin_of_url
from ._request_head import render_parts
from ._request_writer import RequestWriter
from ._ssl_context import Certificate, Verify
from ._transport import StackTransport as HttpxTransport

__all__ = ["StackTransport"]


class StackTransport(httpx2.AsyncBaseTransport):
    """As `udfs.http.StackTransport`, which it uses, for httpx2.

    Args:
        verify: True for certifi's authorities, False for no verification, or an `ssl.SSLContext`. The context takes
            about 100 ms to make, so it is made once, at the first HTTPS request.
        cert: A client certificate, as httpx2 takes it.
        trust_env: Whether `SSL_CERT_FILE` and `SSL_CERT_DIR` are read.
        max_connections: Upper limit of open connections, idle ones included, at least 1. Further requests wait, up to
            httpx2's pool timeout. None: no limit but the operator's capacity.
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
        self._exchanger = HttpxTransport(
            verify=verify,
            cert=cert,
            trust_env=trust_env,
            max_connections=max_connections,
            max_idle=max_idle,
            keepalive_expiry=keepalive_expiry,
            retries=retries,
            uds=uds,
        ).exchanger

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request and return its response, with the body still unread.

        Raises:
            httpx2.RequestError: The request is not valid, or the server was unreachable, too slow or broke off.
            RuntimeError: The transport is closed.
        """
        try:
            origin = origin_of_url(request.url, request.extensions.get("sni_hostname") or None)
            connection = await self._exchanger.begin(origin, _writer(request))
        except httpx.RequestError as error:
            raise _translated(error, request) from error
        head = connection.parser.head
        return httpx2.Response(
            head.status,
            headers=[(name, value) for name, _, value in head.fields],
            stream=_ResponseBody(connection, self._exchanger.release, request),
            extensions={"http_version": head.version, "reason_phrase": head.reason},
        )

    async def aclose(self) -> None:
        """Close every connection, idle or busy. Requests in flight fail."""
        self._exchanger.close()


def _writer(request: httpx2.Request) -> RequestWriter:
    target = request.extensions.get("target") or request.url.raw_path
    head = render_parts(request.method, target, tuple(request.headers.raw))
    body, timeouts = request.stream, request.extensions.get("timeout", {})
    if isinstance(body, httpx2.ByteStream):
        return RequestWriter.with_content(request.method, head, b"".join(body), timeouts)
    assert isinstance(body, httpx2.AsyncByteStream)
    start, length, closes = head
    adapted = _RequestBody(body)
    return RequestWriter(request.method, start, timeouts, closes_connection=closes, body=adapted, length=length)


class _RequestBody(httpx.AsyncByteStream):
    """The body of a request to httpx2."""

    def __init__(self, body: httpx2.AsyncByteStream) -> None:
        self._body = body

    def __aiter__(self) -> AsyncIterator[bytes]:
        return aiter(self._body)

    async def aclose(self) -> None:
        await self._body.aclose()


class _ResponseBody(httpx2.AsyncByteStream):
    """The body of a response, still in its content coding.

    **Cancellation** of a read closes the connection.

    Args:
        connection: Receives the body.
        release: Called once with the connection: at the end, or after an error.
        request: The request that is answered.
    """

    def __init__(self, connection: Connection, release: Callable[[Connection], None], request: httpx2.Request) -> None:
        self._connection = connection
        self._release: Callable[[Connection], None] | None = release
        self._request = request
        self._seconds = request.extensions.get("timeout", {}).get("read")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            while part := await self._read():
                yield part
        finally:
            await self.aclose()

    async def _read(self) -> bytes:
        if self._release is None:  # the connection may have another request by now
            raise httpx2.StreamClosed
        try:
            return await self._connection.read(self._seconds)
        except httpx.RequestError as error:
            raise _translated(error, self._request) from error

    async def aclose(self) -> None:
        release, self._release = self._release, None
        if release is not None:
            release(self._connection)


def _translated(error: httpx.RequestError, request: httpx2.Request) -> httpx2.RequestError:
    """Return httpx2's error of the same name."""
    kind: type[httpx2.RequestError] = getattr(httpx2, type(error).__name__)
    return kind(str(error), request=request)
