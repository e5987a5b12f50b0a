"""StackClient: `httpx.AsyncClient` on a `StackTransport`, with a shorter path for plain requests."""

from __future__ import annotations

import logging
from collections.abc import Generator
from http.cookiejar import CookieJar
from time import perf_counter
from typing import Any, Final

import httpx
from httpx._client import ClientState  # noqa: PLC2701 - `send` opens a client; httpx's version is bounded

from ._decoding import ACCEPT_ENCODING
from ._response import Response
from ._url import checked_url, merge_plain_url

__all__ = ["StackClient"]

_log: Final = logging.getLogger("httpx")  # httpx documents the name of its logger

_WITH_LENGTH: Final = ("POST", "PUT", "PATCH")  # httpx sends a Content-Length with these, even without a body


class StackClient(httpx.AsyncClient):
    """Behaves as `httpx.AsyncClient`. Three steps are shorter where nothing special is requested.

    Authentication, redirects, hooks and cookies remain httpx's own.
    """

    @property
    def headers(self) -> httpx.Headers:
        """Headers of every request. By default they accept every coding that `Response` decodes."""
        return super().headers

    @headers.setter
    def headers(self, headers: Any) -> None:
        httpx.AsyncClient.headers.fset(self, headers)  # type: ignore[attr-defined]  # of a property
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
        has_body = any(each is not None for each in (content, data, files, json)) or method.upper() in _WITH_LENGTH
        if not (has_body or params is not None or cookies is not None or self.params or self.cookies):
            return self._build_plain_request(method, url, headers, timeout, extensions)
        return super().build_request(
            method,
            url,
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
        self, method: str, url: httpx.URL | str, headers: Any, timeout: Any, extensions: Any
    ) -> httpx.Request:
        """Build a request without body, parameters and cookies.

        As httpx does: merge URL, headers and timeout, and put the Host first.
        """
        merged = httpx.Headers(self.headers)
        if headers is not None:
            merged.update(headers)
        target = self._merge_url(url)
        lines = merged._list  # noqa: SLF001 - each: name, name in lower case, value; httpx's version is bounded
        if target.raw_host and b"host" not in [name for _, name, _ in lines]:
            lines.insert(0, (b"Host", b"host", target.netloc))
        extensions = {} if extensions is None else extensions
        if "timeout" not in extensions:
            seconds = self.timeout if timeout is httpx.USE_CLIENT_DEFAULT else httpx.Timeout(timeout)
            extensions = {**extensions, "timeout": seconds.as_dict()}
        request = httpx.Request(method, target, headers=merged, stream=httpx.ByteStream(b""), extensions=extensions)
        request._content = b""  # noqa: SLF001 - `request.read()` would set it
        return request

    def _merge_url(self, url: httpx.URL | str) -> httpx.URL:
        return merge_plain_url(self.base_url, url) or checked_url(super()._merge_url(url))

    def _build_redirect_request(self, request: httpx.Request, response: httpx.Response) -> httpx.Request:
        try:
            redirect = super()._build_redirect_request(request, response)
        except (httpx.InvalidURL, ValueError) as error:  # ValueError: a host that is not valid IDNA
            raise httpx.RemoteProtocolError("Invalid URL in location header.", request=request) from error
        if redirect.url.raw_host != request.url.raw_host:  # its certificate is for another name
            redirect.extensions = {name: it for name, it in redirect.extensions.items() if name != "sni_hostname"}
        return redirect

    async def send(
        self,
        request: httpx.Request,
        *,
        stream: bool = False,
        auth: Any = httpx.USE_CLIENT_DEFAULT,
        follow_redirects: Any = httpx.USE_CLIENT_DEFAULT,
    ) -> httpx.Response:
        """Send a request; see `httpx.AsyncClient.send`."""
        # httpx takes the requests to send from an `Auth`. The base class means no authentication: it yields the one
        # request. What remains of httpx's `send` then is the timeout, the redirects with their hooks, and the body.
        built = self._build_request_auth(request, auth)
        if self.is_closed or type(built) is not httpx.Auth:
            checked = _CheckedDigest(built) if isinstance(built, httpx.DigestAuth) else built
            return await super().send(request, stream=stream, auth=checked, follow_redirects=follow_redirects)
        self._state = ClientState.OPENED
        self._set_timeout(request)
        follows = self.follow_redirects if follow_redirects is httpx.USE_CLIENT_DEFAULT else follow_redirects
        response = await self._send_handling_redirects(request, follow_redirects=follows, history=[])
        try:
            if not stream:
                await response.aread()
        except BaseException:
            await response.aclose()
            raise
        return response

    async def _send_single_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request without authentication and redirects. It differs from httpx's in three points.

        The response measures its own time, so its body needs no `BoundAsyncStream`. The cookie jar, which converts a
        response to an email first, is called only for a response with a cookie, unless it is a jar of another class.
        And the transport sets the request of its errors.
        """
        if not isinstance(request.stream, httpx.AsyncByteStream):
            return await super()._send_single_request(request)  # refuses it
        sent_at = perf_counter()
        response = await self._transport_for_url(request.url).handle_async_request(request)
        assert isinstance(response, Response)
        response.sent_at = sent_at
        response.request = request
        if response.has_cookies or type(self.cookies.jar) is not CookieJar:
            self.cookies.extract_cookies(response)
        response.default_encoding = self._default_encoding
        _log_response(response)
        return response


class _CheckedDigest(httpx.Auth):
    """Digest authentication that raises httpx's error for every malformed challenge."""

    def __init__(self, digest: httpx.DigestAuth) -> None:
        self._digest = digest

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response]:
        try:
            yield from self._digest.auth_flow(request)
        except (KeyError, ValueError, NotImplementedError) as error:
            raise httpx.RemoteProtocolError("Malformed Digest WWW-Authenticate header", request=request) from error


def _log_response(response: httpx.Response) -> None:
    if _log.isEnabledFor(logging.INFO):
        _log.info(
            'HTTP Request: %s %s "%s %d %s"',
            response.request.method,
            response.request.url,
            response.http_version,
            response.status_code,
            response.reason_phrase,
        )
