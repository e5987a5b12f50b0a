"""StackClient: `httpx.AsyncClient` with a shorter path, through the public names of httpx."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from http.cookiejar import CookieJar
from time import perf_counter
from typing import Any, Final

import httpx

from ._authentication import authentication_of
from ._decoding import ACCEPT_ENCODING
from ._mounts import Mounts
from ._redirects import redirect_request
from ._request_headers import merge_headers
from ._response import Response
from ._url import checked_url, merge_plain_url

__all__ = ["StackClient", "log_response", "read"]

_log: Final = logging.getLogger("httpx")  # httpx documents the name of its logger

_set_headers: Final[Any] = httpx.AsyncClient.headers.fset  # type: ignore[attr-defined]  # of a property

_WITH_LENGTH: Final = ("POST", "PUT", "PATCH")  # httpx sends a Content-Length with these, even without a body


class StackClient(httpx.AsyncClient):
    """Behaves as `httpx.AsyncClient`, whose `build_request` and `send` it replaces.

    Args:
        transport: Sends the requests to which no mount applies.
        mounts: Transports by httpx's patterns of URLs; None for `transport`.
        default_encoding: As for `httpx.AsyncClient`.
        max_body_bytes: Upper limit of the decoded body of a response, or None.
        options: Other options of `httpx.AsyncClient`.
    """

    def __init__(
        self,
        *,
        transport: httpx.AsyncBaseTransport,
        mounts: Mapping[str, httpx.AsyncBaseTransport | None] | None = None,
        default_encoding: Any = "utf-8",
        max_body_bytes: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(transport=transport, mounts=mounts, **options)  # opens and closes the transports
        self._routes = Mounts(transport, mounts or {})
        self._charset = default_encoding
        self._max_body_bytes = math.inf if max_body_bytes is None else max_body_bytes
        self._was_used = False

    async def __aenter__(self) -> Any:
        """Open the transports."""
        if self._was_used and not self.is_closed:
            raise RuntimeError("Cannot open a client instance more than once.")
        self._was_used = True
        return await super().__aenter__()

    @property
    def headers(self) -> httpx.Headers:
        """Headers of every request. By default they accept every coding that `Response` decodes."""
        return super().headers

    @headers.setter
    def headers(self, headers: Any) -> None:
        _set_headers(self, headers)
        if "Accept-Encoding" not in httpx.Headers(headers):
            self.headers["Accept-Encoding"] = ACCEPT_ENCODING

    def build_request(
        self,
        method: str,
        url: httpx.URL | str,
        *,
        content: Any = None,
        data: Any = None,
        files: Any = None,
        json: Any = None,
        params: Any = None,
        headers: Any = None,
        cookies: Any = None,
        timeout: Any = httpx.USE_CLIENT_DEFAULT,
        extensions: Any = None,
    ) -> httpx.Request:
        """Build and return a request instance; see `httpx.AsyncClient.build_request`."""
        target = merge_plain_url(self.base_url, url)
        is_relative = False
        if target is None:
            target = self._checked_url(url)
            is_relative = target.is_relative_url
        has_body = not (content is data is files is json is None) or method.upper() in _WITH_LENGTH
        if not (is_relative or has_body or params is not None or cookies is not None or self.params or self.cookies):
            return self._build_plain_request(method, target, headers, timeout, extensions)
        return super().build_request(
            method,
            target,
            content=content,
            data=data,
            files=files,
            json=json,
            params=params,
            headers=headers,
            cookies=cookies,
            timeout=timeout,
            extensions=extensions,
        )

    def _build_plain_request(
        self, method: str, url: httpx.URL, headers: Any, timeout: Any, extensions: Any
    ) -> httpx.Request:
        """Build a request to an absolute URL, without body, parameters and cookies, as httpx does."""
        extensions = {} if extensions is None else extensions
        if "timeout" not in extensions:
            seconds = self.timeout if timeout is httpx.USE_CLIENT_DEFAULT else httpx.Timeout(timeout)
            extensions = {**extensions, "timeout": seconds.as_dict()}
        merged = merge_headers(self.headers, headers, url.netloc if url.raw_host else b"")
        request = httpx.Request(method, url, headers=merged, stream=httpx.ByteStream(b""), extensions=extensions)
        request.read()  # so that `request.content` is there
        return request

    def _checked_url(self, url: httpx.URL | str) -> httpx.URL:
        target = checked_url(httpx.URL(url))
        if target.is_relative_url:
            checked_url(self.base_url)
        return target

    async def send(
        self,
        request: httpx.Request,
        *,
        stream: bool = False,
        auth: Any = httpx.USE_CLIENT_DEFAULT,
        follow_redirects: Any = httpx.USE_CLIENT_DEFAULT,
    ) -> httpx.Response:
        """Send a request; see `httpx.AsyncClient.send`."""
        if self.is_closed:
            return await super().send(request)  # raises httpx's error
        self._was_used = True
        if "timeout" not in request.extensions:
            request.extensions = {**request.extensions, "timeout": self.timeout.as_dict()}
        follows = self.follow_redirects if follow_redirects is httpx.USE_CLIENT_DEFAULT else follow_redirects
        checked = authentication_of(request, self.auth if auth is httpx.USE_CLIENT_DEFAULT else auth)
        if checked is None:
            response = await self._send_following(request, [], follows=follows)
        else:
            response = await self._send_authenticated(request, checked, follows=follows)
        return response if stream else await read(response)

    async def _send_authenticated(self, request: httpx.Request, auth: httpx.Auth, *, follows: bool) -> httpx.Response:
        history: list[httpx.Response] = []
        flow = auth.async_auth_flow(request)
        try:
            request = await anext(flow)
            while True:
                response = await self._send_following(request, history, follows=follows)
                try:
                    try:
                        request = await flow.asend(response)
                    except StopAsyncIteration:
                        return response
                    response.history = list(history)
                    await response.aread()
                    history.append(response)
                except BaseException:
                    await response.aclose()
                    raise
        finally:
            await flow.aclose()

    async def _send_following(
        self, request: httpx.Request, history: list[httpx.Response], *, follows: bool
    ) -> httpx.Response:
        while len(history) <= self.max_redirects:
            for hook in self.event_hooks["request"]:
                await hook(request)
            response = await self._send_once(request)
            try:
                for hook in self.event_hooks["response"]:
                    await hook(response)
                response.history = list(history)
                if not response.has_redirect_location:
                    return response
                request = redirect_request(request, response, self.cookies)
                history = [*history, response]
                if not follows:
                    response.next_request = request
                    return response
                await response.aread()
            except BaseException:
                await response.aclose()
                raise
        raise httpx.TooManyRedirects("Exceeded maximum allowed redirects.", request=request)

    async def _send_once(self, request: httpx.Request) -> httpx.Response:
        """Send a request without authentication and redirects.

        The cookie jar, which converts a response to an email first, is called only for a response with a cookie, unless
        it is a jar of another class.
        """
        if not isinstance(request.stream, httpx.AsyncByteStream):
            raise RuntimeError("Attempted to send an sync request with an AsyncClient instance.")  # noqa: TRY004 - httpx's
        sent_at = perf_counter()
        try:
            received = await self._routes.transport_for(request.url).handle_async_request(request)
        except httpx.RequestError as error:
            error.request = request
            raise
        response = received if isinstance(received, Response) else Response.of(received)
        response.sent_at, response.max_body_bytes = sent_at, self._max_body_bytes
        response.request = request
        if response.has_cookies or type(self.cookies.jar) is not CookieJar:
            self.cookies.extract_cookies(response)
        response.default_encoding = self._charset
        log_response(response)
        return response


async def read(response: httpx.Response) -> httpx.Response:
    """Return a response after reading it; after an error it is closed."""
    try:
        await response.aread()
    except BaseException:
        await response.aclose()
        raise
    return response


def log_response(response: httpx.Response) -> None:
    """Log a response as httpx does."""
    if _log.isEnabledFor(logging.INFO):
        _log.info(
            'HTTP Request: %s %s "%s %d %s"',
            response.request.method,
            response.request.url,
            response.http_version,
            response.status_code,
            response.reason_phrase,
        )
