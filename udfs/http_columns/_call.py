"""HttpCall: one HTTP request as an async function, and the choice of outcomes that are retried."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import httpx

from trio_asyncio_io import AsyncFunction, transient
from trio_asyncio_io.gates import RateLimit
from trio_asyncio_io.policies import cached, gated, single_flight

from ..http import HostRefusedError, StackTransport, client
from ..http._client import environment_proxies
from ..http._decoding import charset_of, decode_text
from ..http._url import Origin
from ._headers import HeaderSource
from ._hosts import HostRule
from ._outcome import AttemptError, HttpResponse, RetryableConnectionError, RetryableError
from ._requests import Hop, HttpRequest, TextPairs

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
    and stored even if it is not retried.

    Runs where: opened once per worker process, with one client. Equal calls share it.

    Args:
        headers: Sent with every request, unless the request has one of the same name. A source is called for each
            attempt, after the wait for the rate.
        retry_statuses: The statuses that are retried.
        rate: Attempts that start per second, or None.
        cache: Seconds for which the response to a GET is cached, or None.
        max_body_bytes: Upper limit of a body, decoded.
        follow_redirects: Whether redirects are followed.
        allowed_hosts: The hosts to which requests may be sent, redirects included; None for all.
        only_public: Whether only globally routable addresses are connected to.
        verify, trust_env: As for `udfs.http.client`.
    """

    headers: TextPairs | HeaderSource = field(repr=False)
    retry_statuses: tuple[int, ...]
    rate: float | None
    cache: float | None
    max_body_bytes: int
    follow_redirects: bool
    allowed_hosts: tuple[HostRule, ...] | None
    only_public: bool
    verify: bool | str
    trust_env: bool

    async def open(self) -> None:
        """Open the client, and put the rate and the cache around the exchange.

        Raises:
            ValueError: No certificates can be loaded from `verify` in this worker.
        """
        certificates: Any = {"verify": self.verify, "trust_env": self.trust_env}
        self._begin: Callable[[httpx.Request], Awaitable[httpx.Response]]
        if self.trust_env and any(environment_proxies().values()):
            self._client = client(timeout=None, max_body_bytes=self.max_body_bytes, **certificates)
            self._begin = partial(self._client.send, stream=True)
        else:
            self._transport = StackTransport(only_public=self.only_public, **certificates)
            self._client = client(timeout=None, transport=self._transport)
            self._begin = self._begin_directly
        if isinstance(self.headers, HeaderSource):
            await self.headers.open()
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
        await self._client.aclose()
        if isinstance(self.headers, HeaderSource):
            await self.headers.close()

    async def invoke(self, request: HttpRequest) -> HttpResponse:
        """Return the response to one attempt.

        Raises:
            RetryableError: The outcome should be retried.
            AttemptError: The response is the result, and its status is 408, 429 or 5xx.
            httpx.HTTPError, httpx.InvalidURL, ValueError: The attempt failed for good; among them `BodyTooLargeError`
                and `HostRefusedError`.
        """
        request.last = None
        request.was_redirected = False
        self._check_request(request)
        try:
            response: HttpResponse = await (self._send_get if request.is_plain_get else self._send)(request)
        except _TRANSIENT as error:
            if not (transient(error) and (request.is_idempotent or _was_never_sent(request, error))):
                raise
            request.last = RetryableConnectionError(None, error)
            raise request.last from error
        except RetryableError as error:
            request.last = error
            raise
        if self._is_retryable(request, response):
            request.last = RetryableError(response)
        elif response.signals_overload:
            request.last = AttemptError(response)
        else:
            return response
        raise request.last

    def _is_retryable(self, request: HttpRequest, response: HttpResponse) -> bool:
        if response.status not in self.retry_statuses:
            return False
        if request.is_idempotent:
            return True
        has_delay = response.status == _UNAVAILABLE and "retry-after" in response.headers
        is_refused = response.status == _TOO_MANY_REQUESTS or has_delay
        return is_refused and not request.was_redirected

    async def _exchange(self, request: HttpRequest) -> HttpResponse:
        hop = request.first_hop(await self._common_headers())
        for _ in range(_MAX_REDIRECTS + 1):
            self._check_host(hop.target.origin)
            outcome = await self._send_hop(hop)
            if isinstance(outcome, HttpResponse):
                return outcome
            hop, request.was_redirected = outcome, True
        raise httpx.TooManyRedirects(f"the request was redirected more than {_MAX_REDIRECTS} times")

    async def _send_hop(self, hop: Hop) -> HttpResponse | Hop:
        """Send a request, and return its response or the request that follows a redirect."""
        request = self._client.build_request(
            hop.method, hop.target.url, headers=hop.headers or None, content=hop.body or None
        )
        response = await self._begin(request)
        try:
            status, headers = response.status_code, dict(response.headers.items())
            if self.follow_redirects and status in _REDIRECTS and "location" in headers:
                return hop.after(status, headers["location"])
            charset = charset_of(headers.get("content-type"))
            return HttpResponse(status, headers, await decode_text(await response.aread(), charset))
        finally:
            await response.aclose()

    async def _begin_directly(self, request: httpx.Request) -> httpx.Response:
        """Send a request without httpx's client, which logs each URL."""
        response = await self._transport.handle_async_request(request)
        response.request, response.max_body_bytes = request, self.max_body_bytes
        return response

    async def _common_headers(self) -> TextPairs:
        """Return the configured headers for an attempt.

        Raises:
            RetryableError: Their source has failed, and may not fail again.
        """
        if not isinstance(self.headers, HeaderSource):
            return self.headers
        try:
            return await self.headers.current()
        except Exception as error:
            if not transient(error):
                raise
            raise RetryableError(None, error) from error

    def _check_request(self, request: HttpRequest) -> None:
        """Check what can be checked before the wait for a rate."""
        request.check()
        if self.allowed_hosts is not None and request.names_host:
            raise HostRefusedError(
                "a row's own Host header could reach a host that is not allowed: "
                "leave it out where allowed_hosts is set, or give it for all rows"
            )

    def _check_host(self, origin: Origin) -> None:
        if self.allowed_hosts is not None and not any(rule.allows(origin) for rule in self.allowed_hosts):
            place = f"{origin.host.decode()}, port {origin.port} ({origin.scheme.decode()})"
            raise HostRefusedError(f"requests to {place} are not allowed: change the URL, or add it to allowed_hosts")


def _was_never_sent(request: HttpRequest, error: Exception) -> bool:
    return isinstance(error, httpx.ConnectError) and not request.was_redirected
