"""StackTransport for httpx2: requests, responses and errors of httpx2, on the connections of httpx's StackTransport."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import httpx
import httpx2

from ._ssl_context import Certificate, Verify
from ._transport import StackTransport as HttpxTransport

__all__ = ["StackTransport"]


class StackTransport(httpx2.AsyncBaseTransport):
    """As `udfs.http.StackTransport`, which it uses, for httpx2.

    Args:
        verify, cert, trust_env, max_connections, max_idle, keepalive_expiry, retries, uds: As for
            `udfs.http.StackTransport`.

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
        self._inner = HttpxTransport(
            verify=verify,
            cert=cert,
            trust_env=trust_env,
            max_connections=max_connections,
            max_idle=max_idle,
            keepalive_expiry=keepalive_expiry,
            retries=retries,
            uds=uds,
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request and return its response, with the body still unread.

        Raises:
            httpx2.RequestError: The request is not valid, or the server was unreachable, too slow or broke off.
            RuntimeError: The transport is closed.
        """
        with _translated_errors(request):
            response = await self._inner.handle_async_request(_request(request))
        return httpx2.Response(
            response.status_code,
            headers=response.headers.raw,
            stream=_ResponseBody(response, request),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Close every connection, idle or busy. Requests in flight fail."""
        await self._inner.aclose()


def _request(request: httpx2.Request) -> httpx.Request:
    body = request.stream
    assert isinstance(body, httpx2.AsyncByteStream)
    return httpx.Request(
        request.method,
        str(request.url),
        headers=request.headers.raw,
        stream=httpx.ByteStream(b"".join(body)) if isinstance(body, httpx2.ByteStream) else _RequestBody(body),
        extensions={"target": request.url.raw_path, **request.extensions},
    )


class _RequestBody(httpx.AsyncByteStream):
    """The body of a request to httpx2."""

    def __init__(self, body: httpx2.AsyncByteStream) -> None:
        self._body = body

    def __aiter__(self) -> AsyncIterator[bytes]:
        return aiter(self._body)

    async def aclose(self) -> None:
        await self._body.aclose()


class _ResponseBody(httpx2.AsyncByteStream):
    """The body of a response, still in its content coding, with httpx2's errors."""

    def __init__(self, response: httpx.Response, request: httpx2.Request) -> None:
        assert isinstance(response.stream, httpx.AsyncByteStream)
        self._stream = response.stream
        self._request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _translated_errors(self._request):
            async for part in self._stream:
                yield part

    async def aclose(self) -> None:
        await self._stream.aclose()


@contextmanager
def _translated_errors(request: httpx2.Request) -> Iterator[None]:
    """Raise httpx2's error of the same name for each one of httpx."""
    try:
        yield
    except httpx.RequestError as error:
        kind: type[httpx2.RequestError] = getattr(httpx2, type(error).__name__)
        raise kind(str(error), request=request) from error
    except httpx.StreamClosed as error:
        raise httpx2.StreamClosed from error
