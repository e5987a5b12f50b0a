"""The client of `udfs.http` for httpx2: the same connections, with httpx2's requests, responses and errors.

    from udfs.http.httpx2 import client

    AsyncOpenAI(http_client=client(), max_retries=0)

Packages such as openai accept only clients of httpx2. The decoding of bodies, redirects, cookies and authentication are
httpx2's.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec

import httpx

try:
    import httpx2
except ImportError as error:
    raise ImportError("udfs.http.httpx2 needs httpx2: in a clone, pip install '.[httpx2]'") from error

from ._client import GivenCookies, TransportOptions, check_options, docstring_from, jar_for
from ._client import client as _httpx_client
from ._decoding import declared_bytes, received_limit, too_large_text
from ._origin import Certificate, Verify, origin_of_url
from ._request import RequestWriter
from ._response import ResponseBody
from ._transport import StackTransport as _HttpxTransport
from ._transport import Wrapping

__all__ = ["BodyTooLargeError", "HostRefusedError", "StackTransport", "client"]

P = ParamSpec("P")

_TIMEOUT: Final = httpx2.Timeout(None, connect=30.0)


@docstring_from(_httpx_client)
def client(
    *,
    verify: Verify = True,
    cert: Certificate | None = None,
    trust_env: bool = False,
    max_connections: int | None = None,
    max_idle: int = 100,
    keepalive_expiry: float = 5.0,
    timeout: float | httpx2.Timeout | None = _TIMEOUT,
    max_body_bytes: int | None = None,
    proxy: str | httpx2.URL | httpx2.Proxy | None = None,
    transport: httpx2.AsyncBaseTransport | None = None,
    mounts: Mapping[str, httpx2.AsyncBaseTransport | None] | None = None,
    cookies: bool | GivenCookies | httpx2.Cookies = False,
    **options: Any,
) -> httpx2.AsyncClient:
    """Return an `httpx2.AsyncClient` on a `StackTransport`, with the options of `udfs.http.client`."""
    check_options(options, max_body_bytes)
    transport_options = TransportOptions(verify, cert, trust_env, max_connections, max_idle, keepalive_expiry)
    transport, mounted = transport_options.transports(httpx2, StackTransport, transport, mounts, proxy)
    if max_body_bytes is not None:
        transport = _BodyLimit(transport, max_body_bytes)
        mounted = {pattern: each and _BodyLimit(each, max_body_bytes) for pattern, each in mounted.items()}
    return httpx2.AsyncClient(
        transport=transport,
        mounts=mounted,
        trust_env=trust_env,
        timeout=timeout,
        cookies=jar_for(cookies),
        **options,
    )


def _with_parameters_of(
    source: Callable[Concatenate[Any, P], None],
) -> Callable[[Callable[..., None]], Callable[Concatenate[Any, P], None]]:
    """Make a decorator with which type checkers and `help` show the parameters of another constructor."""
    return wraps(source)


@docstring_from(_HttpxTransport)
class StackTransport(httpx2.AsyncBaseTransport):
    """`udfs.http.StackTransport` for httpx2."""

    @_with_parameters_of(_HttpxTransport.__init__)
    def __init__(self, **options: Any) -> None:
        self._pool = _HttpxTransport(**options).pool

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request and return its response, with the body still unread.

        Raises:
            httpx2.RequestError: The request is not valid, or the server was unreachable, too slow or broke off.
            RuntimeError: The transport is closed.
        """
        try:
            origin = origin_of_url(request.url, request.extensions.get("sni_hostname") or None)
            connection = await self._pool.send(origin, RequestWriter.of(request, httpx2.ByteStream))
        except httpx.RequestError as error:
            raise _translated(error, request) from error
        head = connection.parser.head
        return httpx2.Response(
            head.status,
            headers=[(name, value) for name, _, value in head.fields],
            stream=_ResponseBody(request, connection, self._pool),
            extensions={"http_version": head.version, "reason_phrase": head.reason},
        )

    async def aclose(self) -> None:
        """Close every connection, idle or busy. Requests in flight fail."""
        self._pool.close()


class _ResponseBody(ResponseBody, httpx2.AsyncByteStream):
    """A body whose errors are httpx2's."""

    async def read(self) -> bytes:
        """See `ResponseBody`."""
        try:
            return await super().read()
        except httpx.StreamClosed:
            raise httpx2.StreamClosed from None
        except httpx.RequestError as error:
            raise _translated(error, self._request) from error


class HostRefusedError(httpx2.RequestError):
    """Requests to this host are not allowed. No connection was opened."""


class BodyTooLargeError(httpx2.RequestError):
    """The body of a response is larger than `max_body_bytes`. The rest was not read."""


def _translated(error: httpx.RequestError, request: httpx2.Request) -> httpx2.RequestError:
    """Return httpx2's error of the same name, or this module's."""
    name = type(error).__name__
    is_ours = name == HostRefusedError.__name__
    error_type: type[httpx2.RequestError] = HostRefusedError if is_ours else getattr(httpx2, name)
    return error_type(str(error), request=request)


class _BodyLimit(Wrapping, httpx2.AsyncBaseTransport):
    """Limits the bodies of another transport's responses.

    Args:
        transport: Sends the requests.
        max_body_bytes: Upper limit of a body, decoded.
    """

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request. The limit applies while the body of its response is read.

        Raises:
            BodyTooLargeError: The transport has read the body, and it is larger than the limit.
        """
        response: httpx2.Response = await self._transport.handle_async_request(request)
        if response.is_closed:
            with suppress(httpx2.ResponseNotRead):
                if len(response.content) > self._max_body_bytes:
                    raise BodyTooLargeError(too_large_text(self._max_body_bytes), request=request)
            return response
        limited = _LimitedResponse(
            response.status_code, headers=response.headers, stream=response.stream, extensions=response.extensions
        )
        limited.max_body_bytes = int(self._max_body_bytes)
        limited.is_stream_consumed = response.is_stream_consumed
        return limited


class _LimitedResponse(httpx2.Response):
    """Raises an error when its decoded body exceeds `max_body_bytes`. httpx2 decodes at most 1 MiB at a time."""

    max_body_bytes: int
    _is_decoding = False

    async def aiter_bytes(self, chunk_size: int | None = None) -> AsyncGenerator[bytes, None]:
        """A byte-iterator over the decoded response content.

        Raises:
            BodyTooLargeError: It is larger than `max_body_bytes`. The connection is closed, unless all of
                the body has arrived.
        """
        limit, size, self._is_decoding = self.max_body_bytes, 0, True
        chunk_size = chunk_size and min(chunk_size, limit + 1)  # httpx2 collects a chunk before it can be counted
        declared_limit = received_limit(limit) if "content-encoding" in self.headers else limit
        if declared_bytes(self) > declared_limit:
            await self.aclose()
            raise self._too_large()
        async with aclosing(super().aiter_bytes(chunk_size)) as parts:
            async for part in parts:
                size += len(part)
                if size > limit:
                    raise self._too_large()
                yield part

    async def aiter_raw(self, chunk_size: int | None = None) -> AsyncGenerator[bytes, None]:
        """A byte-iterator over the raw response content. It is limited only where it is decoded.

        Raises:
            BodyTooLargeError: Much more has arrived than the decoded body may have: a coded body of any size can decode
                to nothing.
        """
        limit, size = received_limit(self.max_body_bytes), 0
        async with aclosing(super().aiter_raw(chunk_size)) as parts:
            async for part in parts:
                size += len(part)
                if self._is_decoding and size > limit:
                    raise self._too_large()
                yield part

    def _too_large(self) -> BodyTooLargeError:
        return BodyTooLargeError(too_large_text(self.max_body_bytes), request=self.request)
