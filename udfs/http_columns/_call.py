"""HttpCall: one HTTP request as an async function, and the choice of outcomes that are retried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import httpx

from trio_asyncio_io import AsyncFunction
from trio_asyncio_io.gates import RateLimit
from trio_asyncio_io.policies import cached, gated, single_flight

from ..http import HostRefusedError, StackTransport
from ..http._charset import charset_of, decode_text
from ..http._exchange import WholeResponse
from ..http._origin import Origin
from ._outcome import AttemptError, HttpResponse, RetryableConnectionError, RetryableError
from ._requests import HostRule, HttpRequest

__all__ = ["HttpCall"]

_CACHED_RESPONSES: Final = 4_000
_MAX_REDIRECTS: Final = 20
_TOO_MANY_REQUESTS: Final = 429
_UNAVAILABLE: Final = 503
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})

# Errors of the network, in contrast to errors of the request or of the body
_TRANSIENT: Final = (httpx.NetworkError, httpx.RemoteProtocolError)


@dataclass(eq=False, kw_only=True)
class HttpCall(AsyncFunction[HttpRequest, HttpResponse]):
    """A function from a request to its response.

    An outcome that should be retried is raised as a `RetryableError` and stored in the request, where it is the result
    when retries or time are used up. Gates see only exceptions, so a response about the state of the service is raised
    and stored also if it is not retried.

    Runs where: opened once per worker process, with one client. Equal calls share it.

    Args:
        headers: Sent with every request, unless the request has one of the same name.
        retry_statuses: The statuses that are retried.
        rate: Attempts that start per second, or None.
        cache: Seconds for which the response to a GET is cached, or None.
        max_body_bytes: Upper limit of a body, decoded.
        follow_redirects: Whether redirects are followed.
        allowed_hosts: The hosts to which requests may be sent, redirects included; None for all.
        only_public: Whether only globally routable addresses are connected to.
    """

    headers: tuple[tuple[str, str], ...]
    retry_statuses: tuple[int, ...]
    rate: float | None
    cache: float | None
    max_body_bytes: int
    follow_redirects: bool
    allowed_hosts: tuple[HostRule, ...] | None
    only_public: bool

    async def open(self) -> None:
        """Open the transport, and put the rate and the cache around the exchange."""
        self._transport = StackTransport(only_public=self.only_public)
        self._exchanger = self._transport.exchanger
        self._send: Any = self._exchange
        if self.rate is not None:
            self._send = gated(self._exchange, RateLimit(self.rate, burst=max(1, int(self.rate / 100))))
        self._send_get: Any = self._send
        if self.cache is not None:
            key = HttpRequest.cache_key
            self._send_get = cached(
                single_flight(self._send, key=key),
                size=_CACHED_RESPONSES,
                ttl=self.cache,
                key=key,
                negative_ttl=0,
                is_negative=lambda response: response.status in self.retry_statuses or not response.is_cacheable,
            )

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.aclose()

    async def invoke(self, request: HttpRequest) -> HttpResponse:
        """Return the response to one attempt.

        Raises:
            RetryableError: The outcome should be retried.
            AttemptError: The response is the result, and its status is 408, 429 or 5xx.
            httpx.HTTPError, httpx.InvalidURL, ValueError: The attempt failed for good; among them `BodyTooLargeError`
                and `HostRefusedError`.
        """
        request.last = None
        request.prepare(self.headers)
        try:
            response: HttpResponse = await (self._send_get if request.is_plain_get else self._send)(request)
        except _TRANSIENT as error:
            if not (request.is_idempotent or _was_never_sent(request, error)):
                raise
            request.last = RetryableConnectionError(None, error)
            raise request.last from error
        request.last = self._trouble(request, response)
        if request.last is None:
            return response
        raise request.last

    def _trouble(self, request: HttpRequest, response: HttpResponse) -> AttemptError | None:
        """The error to raise for a response, or None."""
        if self._is_retryable(request, response):
            return RetryableError(response)
        return AttemptError(response) if response.is_trouble else None

    def _is_retryable(self, request: HttpRequest, response: HttpResponse) -> bool:
        if response.status not in self.retry_statuses:
            return False
        if request.is_idempotent:
            return True
        has_delay = response.status == _UNAVAILABLE and "retry-after" in response.headers
        is_refused = response.status == _TOO_MANY_REQUESTS or has_delay
        return is_refused and not request.was_redirected

    async def _exchange(self, request: HttpRequest) -> HttpResponse:
        hop = request.prepared
        assert hop is not None
        for _ in range(_MAX_REDIRECTS + 1):
            self._check_host(hop.target.origin)
            connection = await self._exchanger.begin(hop.target.origin, hop.writer)
            head = connection.parser.head
            if not (self.follow_redirects and head.status in _REDIRECTS and b"location" in head.names):
                whole = await self._exchanger.finish(connection, hop.writer, self.max_body_bytes)
                return await _response(whole)
            self._exchanger.release(connection)  # closes it if the body, which nobody reads, has not arrived
            hop = hop.after(head.status, head.texts["location"])
            request.was_redirected = True
        raise httpx.TooManyRedirects(f"the request was redirected more than {_MAX_REDIRECTS} times")

    def _check_host(self, origin: Origin) -> None:
        if self.allowed_hosts is not None and not any(rule.allows(origin) for rule in self.allowed_hosts):
            place = f"{origin.host.decode()}, port {origin.port} ({origin.scheme.decode()})"
            raise HostRefusedError(f"requests to {place} are not allowed: change the URL, or add it to allowed_hosts")


async def _response(whole: WholeResponse) -> HttpResponse:
    headers = whole.head.texts
    text = await decode_text(whole.content, charset_of(headers.get("content-type")))
    return HttpResponse(whole.head.status, headers, text)


def _was_never_sent(request: HttpRequest, error: Exception) -> bool:
    return isinstance(error, httpx.ConnectError) and not request.was_redirected
