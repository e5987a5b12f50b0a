"""HttpCall: one HTTP request as an async function, and the choice of outcomes that are retried."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import aclosing
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Final

import httpx
import trio

from trio_asyncio_io import AsyncFunction, retry_after
from trio_asyncio_io.policies import cached, rate_limited, single_flight

from ..http import client
from ..http._charset import decode_text
from ..http._response import Response as ClientResponse
from ._request import Request
from ._response import Response, RetryableError

__all__ = ["HttpCall"]

_CACHED_RESPONSES: Final = 4_000
_MAX_REDIRECTS: Final = 20
_TOO_MANY_REQUESTS: Final = 429
_UNAVAILABLE: Final = 503

# Errors of the network, in contrast to errors of the request or of the body
_TRANSIENT: Final = (httpx.NetworkError, httpx.RemoteProtocolError)


@dataclass(eq=False, kw_only=True)
class HttpCall(AsyncFunction[Request, Response | None]):
    """A function from a request to its response, whatever the status; None for a request without a URL.

    An outcome that should be retried is raised as a `RetryableError` and stored in the request, where it is the result
    when retries or time are used up. A response whose `Retry-After` ends after the deadline is returned immediately.

    Runs where: opened once per worker process, with one client. Equal calls share it.

    Args:
        timeout: Seconds from a request's first attempt to its deadline.
        headers: Sent with every request, unless the request has one of the same name.
        retry_statuses: The statuses that are retried.
        rate: Attempts that start per second, or None.
        cache: Seconds for which the response to a GET is cached, or None.
        max_body_bytes: Upper limit of a body, decoded.
        follow_redirects: Whether redirects are followed.
    """

    timeout: float
    headers: tuple[tuple[str, str], ...]
    retry_statuses: tuple[int, ...]
    rate: float | None
    cache: float | None
    max_body_bytes: int
    follow_redirects: bool

    async def open(self) -> None:
        """Open the client, and put the rate and the cache around the exchange."""
        # Rows do not share cookies. With this policy the jar does not even parse them, which takes 5 ms per cookie if
        # a redirect leads to a URL of 64 KiB
        no_cookies = CookieJar(DefaultCookiePolicy(netscape=False))
        hook = _check_location if self.follow_redirects else _mark_as_result
        self._http = client(
            timeout=None,
            cookies=no_cookies,
            event_hooks={"response": [hook]},
            max_body_bytes=self.max_body_bytes,
        )
        self._send: Any = self._exchange
        if self.rate is not None:
            self._send = rate_limited(self._exchange, self.rate, burst=max(1, int(self.rate / 100)))
        self._send_get: Any = self._send
        if self.cache is not None:
            key = Request.cache_key
            self._send_get = cached(
                single_flight(self._send, key=key),
                size=_CACHED_RESPONSES,
                ttl=self.cache,
                key=key,
                negative_ttl=0,
                is_negative=_is_not_cacheable,
            )

    async def close(self) -> None:
        """Close the client and its connections."""
        await self._http.aclose()

    async def invoke(self, request: Request) -> Response | None:
        """Return the response to one attempt.

        Raises:
            RetryableError: The outcome should be retried.
            httpx.HTTPError, httpx.InvalidURL, BodyTooLargeError, ValueError: The attempt failed for good.
        """
        request.last = None
        if request.is_null:
            return None
        request.prepare(self._http, self.headers, trio.current_time() + self.timeout)
        try:
            response: Response = await (self._send_get if request.is_plain_get else self._send)(request)
        except _TRANSIENT as error:
            if not (request.is_idempotent or _was_never_sent(request, error)):
                raise
            request.last = RetryableError(None, error)
            raise request.last from error
        if not self._is_retryable(request, response):
            return response
        request.last = RetryableError(response)
        if trio.current_time() + (retry_after(request.last) or 0.0) >= request.deadline:
            return response
        raise request.last

    def _is_retryable(self, request: Request, response: Response) -> bool:
        if response.status not in self.retry_statuses:
            return False
        if request.is_idempotent:
            return True
        has_delay = response.status == _UNAVAILABLE and "retry-after" in response.headers
        is_refused = response.status == _TOO_MANY_REQUESTS or has_delay
        return is_refused and not request.was_redirected

    async def _exchange(self, request: Request) -> Response:
        hop = request.prepared
        assert hop is not None
        for _ in range(_MAX_REDIRECTS + 1):
            response = await self._http.send(hop, stream=True, follow_redirects=False)
            assert isinstance(response, ClientResponse)
            async with aclosing(response):
                if response.next_request is None:
                    return await self._read(response)
                request.was_redirected = True
                hop = response.next_request
        raise httpx.TooManyRedirects(f"the request was redirected more than {_MAX_REDIRECTS} times")

    async def _read(self, response: ClientResponse) -> Response:
        body = await response.aread()
        text = await decode_text(body, response.charset_encoding)
        return Response(response.status_code, _joined(response.headers.multi_items()), text)


def _is_not_cacheable(response: Response) -> bool:
    return not response.is_cacheable


async def _mark_as_result(response: httpx.Response) -> None:
    """Keep httpx from parsing the Location of a redirect that is not followed. A hook."""
    assert isinstance(response, ClientResponse)
    response.is_result = True


async def _check_location(response: httpx.Response) -> None:
    """Refuse an unusable Location, without showing it and without a network error. A hook.

    Raises:
        httpx.InvalidURL, httpx.UnsupportedProtocol: The Location is not usable. Another attempt would fail as well.
    """
    if response.has_redirect_location:
        try:
            target = response.url.join(response.headers["Location"])
            is_supported = target.scheme in {"http", "https"} and bool(target.host)
        except (httpx.InvalidURL, ValueError):  # ValueError: httpx cannot decode the host
            raise httpx.InvalidURL("the Location of a redirect is not a valid URL") from None
        if not is_supported:
            raise httpx.UnsupportedProtocol("the Location of a redirect must start with http:// or https://")


def _joined(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Join headers of the same name. httpx's `items` takes quadratic time for many of them."""
    values: dict[str, list[str]] = {}
    for name, value in headers:
        values.setdefault(name, []).append(value)
    return {name: ", ".join(each) for name, each in values.items()}


def _was_never_sent(request: Request, error: Exception) -> bool:
    return isinstance(error, httpx.ConnectError) and not request.was_redirected
