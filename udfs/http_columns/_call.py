"""The HTTP call: one request of one row as an async function, and what of its outcome is worth another attempt."""

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
from ..http._charset import text_of
from ..http._response import Reply
from ._answer import Answer, RetryableError
from ._request import Request

__all__ = ["HttpCall"]

_KEPT_ANSWERS: Final = 4_000
_MOST_REDIRECTS: Final = 20
_TOO_MANY: Final = 429
_UNAVAILABLE: Final = 503

# What the network does, as opposed to what is wrong with the request or with the body.
_TRANSIENT: Final = (httpx.NetworkError, httpx.RemoteProtocolError)


class _NotKeptError(Exception):
    """Carries an answer past the cache."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.status)
        self.answer = answer


@dataclass(eq=False, kw_only=True)
class HttpCall(AsyncFunction[Request, Answer | None]):
    """A function, request -> its answer, whatever the status; None for a request without a URL.

    What is worth another attempt is raised as a `RetryableError`, and left in the request too: when the retries or the
    time are used up, it stands. An answer whose `Retry-After` lies beyond the deadline is returned at once.

    Runs where: opened once per worker process, with one client; equal ones share it.

    Args:
        timeout: Seconds from a request's first attempt to its deadline.
        headers: Sent with every request; the request's own of the same name come instead.
        retry_statuses: The statuses that are worth another attempt.
        rate: Attempts that start per second, or None.
        cache: Seconds for which a GET's answer is kept, or None.
        max_body_bytes: Limit of a body's bytes, decoded.
        follow_redirects: Whether the answer to a redirect is that of its target.
    """

    timeout: float
    headers: tuple[tuple[str, str], ...]
    retry_statuses: tuple[int, ...]
    rate: float | None
    cache: float | None
    max_body_bytes: int
    follow_redirects: bool

    async def open(self) -> None:
        """Open the client, and what stands between it and the rows."""
        # A row must not send the cookies of another one. With this policy the jar does not even parse them, which takes
        # 5 ms for each cookie if a redirect leads to a URL of 64 KiB
        no_cookies = CookieJar(DefaultCookiePolicy(netscape=False))
        hook = _check_location if self.follow_redirects else _as_result
        self._http = client(timeout=None, cookies=no_cookies, event_hooks={"response": [hook]})
        self._send: Any = self._exchange
        if self.rate is not None:
            self._send = rate_limited(self._exchange, self.rate, burst=max(1, int(self.rate / 100)))
        self._get: Any = self._keepable
        if self.cache is not None:
            key = Request.cache_key
            shared = single_flight(self._keepable, key=key)
            self._get = cached(shared, size=_KEPT_ANSWERS, ttl=self.cache, key=key)

    async def close(self) -> None:
        """Close the client and its connections."""
        await self._http.aclose()

    async def invoke(self, request: Request) -> Answer | None:
        """The answer to one attempt.

        Raises:
            RetryableError: The outcome is worth another attempt.
            httpx.HTTPError, httpx.InvalidURL, BodyTooLargeError, ValueError: There is no answer.
        """
        request.last = None
        if request.is_null:
            return None
        request.begin(self._http, self.headers, trio.current_time() + self.timeout)
        try:
            answer = await self._answer(request)
        except _TRANSIENT as error:
            if not (request.is_idempotent or _was_never_sent(request, error)):
                raise
            request.last = RetryableError(None, error)
            raise request.last from error
        if not self._asks_for_another(request, answer):
            return answer
        request.last = RetryableError(answer)
        if trio.current_time() + (retry_after(request.last) or 0.0) >= request.deadline:
            return answer
        raise request.last

    async def _answer(self, request: Request) -> Answer:
        answer: Answer
        if not request.is_plain_get:
            answer = await self._send(request)
            return answer
        try:
            answer = await self._get(request)
        except _NotKeptError as passed:
            answer = passed.answer
        return answer

    async def _keepable(self, request: Request) -> Answer:
        answer: Answer = await self._send(request)
        if not answer.may_be_kept:
            raise _NotKeptError(answer)
        return answer

    def _asks_for_another(self, request: Request, answer: Answer) -> bool:
        if answer.status not in self.retry_statuses:
            return False
        if request.is_idempotent:
            return True
        refused = answer.status == _TOO_MANY or (answer.status == _UNAVAILABLE and "retry-after" in answer.headers)
        return refused and not request.was_redirected

    async def _exchange(self, request: Request) -> Answer:
        hop = request.prepared
        assert hop is not None
        for _ in range(_MOST_REDIRECTS + 1):
            response = await self._http.send(hop, stream=True, follow_redirects=False)
            assert isinstance(response, Reply)
            async with aclosing(response):
                if response.next_request is None:
                    return await self._read(response)
                request.was_redirected = True
                hop = response.next_request
        raise httpx.TooManyRedirects(f"there were more than {_MOST_REDIRECTS} redirects")

    async def _read(self, response: Reply) -> Answer:
        body = await response.aread_within(self.max_body_bytes)
        text = await text_of(body, response.charset_encoding)
        return Answer(response.status_code, _joined(response.headers.multi_items()), text)


async def _as_result(response: httpx.Response) -> None:
    """A hook, for redirects that are not followed: httpx would parse the Location, and fail if it is not a URL."""
    assert isinstance(response, Reply)
    response.is_result = True


async def _check_location(response: httpx.Response) -> None:
    """A hook, for redirects that are followed: an unusable Location is not an error of the network, nor shown.

    Raises:
        httpx.InvalidURL, httpx.UnsupportedProtocol: Another attempt will not make it usable.
    """
    if response.has_redirect_location:
        try:
            target = response.url.join(response.headers["Location"])
            is_supported = target.scheme in {"http", "https"} and bool(target.host)
        except (httpx.InvalidURL, ValueError):  # httpx decodes the host when it is asked for
            raise httpx.InvalidURL("the Location of a redirect is not a valid URL") from None
        if not is_supported:
            raise httpx.UnsupportedProtocol("the Location of a redirect must start with http:// or https://")


def _joined(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The headers by name. httpx's `items` takes quadratic time if many have the same name."""
    values: dict[str, list[str]] = {}
    for name, value in headers:
        values.setdefault(name, []).append(value)
    return {name: ", ".join(each) for name, each in values.items()}


def _was_never_sent(request: Request, error: Exception) -> bool:
    return isinstance(error, httpx.ConnectError) and not request.was_redirected
