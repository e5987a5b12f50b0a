"""Connection: one HTTP/1.1 connection of httpcore that speaks httpx, with a close that always closes."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import httpcore
import httpx
import trio

from ._http_idle import Origin

__all__ = ["Body", "Connection"]

_ERRORS: Final[dict[type[BaseException], type[httpx.RequestError]]] = {
    httpcore.ConnectTimeout: httpx.ConnectTimeout,
    httpcore.ReadTimeout: httpx.ReadTimeout,
    httpcore.WriteTimeout: httpx.WriteTimeout,
    httpcore.ConnectError: httpx.ConnectError,
    httpcore.ReadError: httpx.ReadError,
    httpcore.WriteError: httpx.WriteError,
    httpcore.LocalProtocolError: httpx.LocalProtocolError,
    httpcore.RemoteProtocolError: httpx.RemoteProtocolError,
}


class Connection:
    """One connection to one origin, for one request at a time. It connects at its first request.

    Args:
        origin: Scheme, host and port.
        ssl_context: For an HTTPS origin; httpcore makes its own where there is none.
        keepalive_expiry: Seconds after which the idle connection is not used again.
        retries: Attempts to connect after the first.
    """

    def __init__(
        self, origin: Origin, ssl_context: ssl.SSLContext | None, keepalive_expiry: float, retries: int
    ) -> None:
        self.origin = origin
        self._dialer = _Dialer()
        self._http = httpcore.AsyncHTTPConnection(
            origin=httpcore.Origin(*origin),
            ssl_context=ssl_context,
            keepalive_expiry=keepalive_expiry,
            retries=retries,
            network_backend=self._dialer,
        )

    async def send(self, request: httpx.Request) -> httpcore.Response:
        """The response to one request, its body still unread. After an error only `aclose` is left.

        Raises:
            httpx.RequestError: The other side could not be reached, was too slow, or broke off.
        """
        with _as_httpx_errors(request):
            return await self._http.handle_async_request(_as_httpcore(request))

    def is_reusable(self) -> bool:
        """Whether the last response was read to its end, not too long ago, and neither side has closed."""
        return self._http.is_idle() and not self._http.has_expired()

    async def aclose(self) -> None:
        """Close the socket, whatever is going on above it. This waits for nobody and is not cancelled."""
        if self._dialer.stream is not None:
            with trio.CancelScope(shield=True):
                await self._dialer.stream.aclose()


class _Dialer(httpcore.TrioBackend):
    """Remembers the socket, because httpcore forgets it when a TLS handshake is cancelled."""

    stream: httpcore.AsyncNetworkStream | None = None

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        self.stream = await super().connect_tcp(host, port, timeout, local_address, socket_options)
        return self.stream


class Body(httpx.AsyncByteStream):
    """The body of a response, as it arrives.

    Args:
        request: What was asked.
        answer: httpcore's response.
        closed: Called once, after the body was closed, whatever came of that.
    """

    def __init__(
        self, request: httpx.Request, answer: httpcore.Response, closed: Callable[[], Awaitable[None]]
    ) -> None:
        self._request = request
        self._answer = answer
        self._closed: Callable[[], Awaitable[None]] | None = closed

    async def __aiter__(self) -> AsyncIterator[bytes]:
        assert isinstance(self._answer.stream, AsyncIterable)
        with _as_httpx_errors(self._request):
            async for chunk in self._answer.stream:
                yield chunk

    async def aclose(self) -> None:
        """Close the body, read to its end or not. The second time nothing happens."""
        closed, self._closed = self._closed, None
        if closed is not None:
            try:
                await self._answer.aclose()
            finally:
                await closed()


def _as_httpcore(request: httpx.Request) -> httpcore.Request:
    url = request.url
    return httpcore.Request(
        request.method,
        httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
        headers=request.headers.raw,
        content=request.stream,
        extensions=request.extensions,
    )


@contextmanager
def _as_httpx_errors(request: httpx.Request) -> Iterator[None]:
    try:
        yield
    except tuple(_ERRORS) as error:
        kind = next(_ERRORS[base] for base in type(error).__mro__ if base in _ERRORS)
        raise kind(_message(error, request), request=request) from error


def _message(error: BaseException, request: httpx.Request) -> str:
    if isinstance(error, httpcore.TimeoutException):
        step = type(error).__name__.removesuffix("Timeout").lower()
        return f"{step} timeout of {request.extensions.get('timeout', {}).get(step)} s"
    cause: BaseException | None = error
    while cause is not None and not str(cause):
        cause = cause.__cause__
    return str(cause or type(error).__name__)
