"""The client of `udfs.http` for httpx2: the same connections, with httpx2's requests, responses and errors.

    from udfs.http.httpx2 import client

    AsyncOpenAI(http_client=client(), max_retries=0)

Packages such as openai accept only clients of httpx2. The decoding of bodies, redirects, cookies and authentication are
httpx2's.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from functools import partial
from types import TracebackType
from typing import Any, Final, Self

import httpx

try:
    import httpx2
except ImportError as error:
    raise ImportError("udfs.http.httpx2 needs httpx2: pip install 'trio-asyncio-io[httpx2]'") from error

from ._client import check_options
from ._connection import Connection
from ._decoding import check_body_limit, received_limit, too_large_text
from ._origin import Certificate, Verify, origin_of_url
from ._proxies import chosen_proxies, proxy_mounts
from ._request import RequestWriter
from ._transport import StackTransport as _HttpxTransport

__all__ = ["BodyTooLargeError", "HostRefusedError", "StackTransport", "client"]

_TIMEOUT: Final = httpx2.Timeout(None, connect=30.0)


def client(
    *,
    verify: Verify = True,
    cert: Certificate | None = None,
    trust_env: bool = False,
    max_connections: int | None = None,
    max_idle: int = 100,
    keepalive_expiry: float = 5.0,
    retries: int = 0,
    timeout: float | httpx2.Timeout | None = _TIMEOUT,
    max_body_bytes: int | None = None,
    proxy: str | httpx2.URL | httpx2.Proxy | None = None,
    transport: httpx2.AsyncBaseTransport | None = None,
    mounts: Mapping[str, httpx2.AsyncBaseTransport | None] | None = None,
    **options: Any,
) -> httpx2.AsyncClient:
    """Return an `httpx2.AsyncClient` on a `StackTransport`, with the defaults of `udfs.http.client`.

    **Cancellation** of a request closes its connection and no other.

    Args:
        verify: True for certifi's authorities, False for no verification, or an `ssl.SSLContext`.
        cert: A client certificate, as httpx2 takes it.
        trust_env: Whether `SSL_CERT_FILE` and `SSL_CERT_DIR` are read. With True, the proxies of the environment
            (`HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`) are also used, as by httpx2. `.netrc` is not read:
            pass `auth=httpx2.NetRCAuth()`.
        max_connections: Upper limit of open connections, idle ones included, at least 1. Further requests wait, up to
            httpx2's pool timeout. None: no limit but the operator's capacity.
        max_idle: Upper limit of idle connections over all origins, at least 0. 0: no connection is reused.
        keepalive_expiry: Seconds after which an idle connection is closed, at least 0. `math.inf`: never.
        retries: Attempts to connect after the first, at least 0. Leave it at 0 where the operator has a retry strategy,
            which also counts its attempts.
        timeout: Seconds for each step, an `httpx2.Timeout`, or None for no limit. By default each attempt to connect
            has 30 s and the other steps have no limit.
        max_body_bytes: Upper limit of the decoded body of a response, at least 1. A larger one raises a
            `BodyTooLargeError` and closes its connection. None: no limit.
        proxy: The proxy of all requests, and not those of the environment.
        transport: Sends the requests instead of a `StackTransport`, for example an `httpx2.MockTransport` in a test.
        mounts: Transports for some URLs, by httpx2's patterns.
        options: Any other option of `httpx2.AsyncClient`: `base_url`, `headers`, `auth` and so on.

    Returns:
        A client. The caller closes it: `async with client() as http`, or `await http.aclose()`.

    Raises:
        ValueError: As for `udfs.http.client`.
        TypeError: httpx2 has no such option.

    Example:
        >>> class Embedding(AsyncFunction):
        ...     async def open(self):
        ...         self.service = AsyncOpenAI(http_client=client(), max_retries=0)
        ...     async def close(self):
        ...         await self.service.close()
    """
    check_options(options)
    check_body_limit(max_body_bytes)
    proxies = chosen_proxies(proxy, from_environment=trust_env and transport is None)
    if transport is None:
        transport = StackTransport(
            verify=verify,
            cert=cert,
            trust_env=trust_env,
            max_connections=max_connections,
            max_idle=max_idle,
            keepalive_expiry=keepalive_expiry,
            retries=retries,
        )
    limits = httpx2.Limits(
        max_connections=max_connections, max_keepalive_connections=max_idle, keepalive_expiry=keepalive_expiry
    )
    proxied = partial(httpx2.AsyncHTTPTransport, verify=verify, cert=cert, trust_env=trust_env, limits=limits)
    mounted = {**proxy_mounts(proxies, proxied), **(mounts or {})}
    if max_body_bytes is not None:
        transport = _BodyLimit(transport, max_body_bytes)
        mounted = {pattern: each and _BodyLimit(each, max_body_bytes) for pattern, each in mounted.items()}
    return httpx2.AsyncClient(transport=transport, mounts=mounted, trust_env=trust_env, timeout=timeout, **options)


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
        only_public: Whether only hosts with globally routable addresses are connected to, as in
            `udfs.http.StackTransport`.

    Raises:
        ValueError: A limit is out of its range; or `uds` and `only_public` are both given.
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
        only_public: bool = False,
    ) -> None:
        self._exchanger = _HttpxTransport(
            verify=verify,
            cert=cert,
            trust_env=trust_env,
            max_connections=max_connections,
            max_idle=max_idle,
            keepalive_expiry=keepalive_expiry,
            retries=retries,
            uds=uds,
            only_public=only_public,
        ).exchanger

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request and return its response, with the body still unread.

        Raises:
            httpx2.RequestError: The request is not valid, or the server was unreachable, too slow or broke off.
            RuntimeError: The transport is closed.
        """
        try:
            origin = origin_of_url(request.url, request.extensions.get("sni_hostname") or None)
            connection = await self._exchanger.begin(origin, RequestWriter.of(request, httpx2.ByteStream))
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


class HostRefusedError(httpx2.RequestError):
    """Requests to this host are not allowed. No connection was opened."""


class BodyTooLargeError(httpx2.RequestError):
    """The body of a response is larger than `max_body_bytes`. The rest was not read."""


def _translated(error: httpx.RequestError, request: httpx2.Request) -> httpx2.RequestError:
    """Return httpx2's error of the same name, or this module's."""
    name = type(error).__name__
    kind: type[httpx2.RequestError] = HostRefusedError if name == HostRefusedError.__name__ else getattr(httpx2, name)
    return kind(str(error), request=request)


class _BodyLimit(httpx2.AsyncBaseTransport):
    """Limits the bodies of another transport's responses.

    Args:
        transport: Sends the requests.
        max_body_bytes: Upper limit of a body, decoded.
    """

    def __init__(self, transport: httpx2.AsyncBaseTransport, max_body_bytes: int) -> None:
        self._transport = transport
        self._max_body_bytes = max_body_bytes

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request. The body of its response is limited as it is read."""
        response = await self._transport.handle_async_request(request)
        limited = _LimitedResponse(
            response.status_code, headers=response.headers, stream=response.stream, extensions=response.extensions
        )
        limited.max_body_bytes = self._max_body_bytes
        return limited

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        await self._transport.__aexit__(kind, error, traceback)

    async def aclose(self) -> None:
        """Close the transport."""
        await self._transport.aclose()


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
        limit, size = received_limit(self.max_body_bytes, is_coded=True), 0
        async with aclosing(super().aiter_raw(chunk_size)) as parts:
            async for part in parts:
                size += len(part)
                if self._is_decoding and size > limit:
                    raise self._too_large()
                yield part

    def _too_large(self) -> BodyTooLargeError:
        return BodyTooLargeError(too_large_text(self.max_body_bytes), request=self.request)
