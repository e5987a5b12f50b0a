"""StackClient: `httpx.AsyncClient` with a shorter way for what nothing special is in play."""

from __future__ import annotations

import logging
from collections.abc import Generator
from http.cookiejar import CookieJar
from time import perf_counter
from typing import Any, Final

import httpx
from httpx._client import ClientState  # noqa: PLC2701 - `send` opens a client; httpx's version is bound

from ._decoding import ACCEPT_ENCODING
from ._response import Reply
from ._url import checked_url, plain_url

__all__ = ["StackClient"]

_log: Final = logging.getLogger("httpx")  # what httpx logs, it logs there: its documentation says so

_WITH_LENGTH: Final = ("POST", "PUT", "PATCH")  # of which httpx sends a Content-Length though there is no body


class StackClient(httpx.AsyncClient):
    """`httpx.AsyncClient` in every respect, on a `StackTransport`; three steps are shorter where that is the same.

    Authentication, redirects, hooks and cookies remain httpx's own.
    """

    @property
    def headers(self) -> httpx.Headers:
        """Headers of every request. By default a `Reply` decodes every coding that they accept."""
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
        has_body = not (content is data is files is json is None) or method.upper() in _WITH_LENGTH
        if has_body or params is not None or cookies is not None or self.params or self.cookies:
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
        # What httpx does where there is no body: merge URL, headers and timeout, and put a Host in front. The
        # encoding of a body that is none, and the merging of parameters and cookies that are none, change nothing.
        merged = httpx.Headers(self.headers)
        if headers is not None:
            merged.update(headers)
        target = self._merge_url(url)
        lines = merged._list  # noqa: SLF001 - as it is written, in lower case, and the value; httpx's version is bound
        if target.raw_host and b"host" not in [name for _, name, _ in lines]:
            lines.insert(0, (b"Host", b"host", target.netloc))
        extensions = {} if extensions is None else extensions
        if "timeout" not in extensions:
            seconds = self.timeout if timeout is httpx.USE_CLIENT_DEFAULT else httpx.Timeout(timeout)
            extensions = {**extensions, "timeout": seconds.as_dict()}
        request = httpx.Request(method, target, headers=merged, stream=httpx.ByteStream(b""), extensions=extensions)
        request._content = b""  # noqa: SLF001 - what `request.read()` would come to
        return request

    def _merge_url(self, url: httpx.URL | str) -> httpx.URL:
        return plain_url(self.base_url, url) or checked_url(super()._merge_url(url))

    def _build_redirect_request(self, request: httpx.Request, response: httpx.Response) -> httpx.Request:
        try:
            redirect = super()._build_redirect_request(request, response)
        except (httpx.InvalidURL, ValueError) as error:  # ValueError: a host that is not valid IDNA
            raise httpx.RemoteProtocolError("Invalid URL in location header.", request=request) from error
        if redirect.url.raw_host != request.url.raw_host:  # whose certificate is for another name
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
        # httpx asks an `Auth` for the requests to send. `Auth` itself, which stands for none, gives the one and ends.
        # Then what is left of `send` is a timeout, the redirects, with their hooks, and the body.
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
        # httpx's own, but for three things. The response times itself, so that no `BoundAsyncStream` lies around its
        # body. The cookie jar, which turns a response into an email first, is asked only if there is a cookie in it:
        # the standard library's makes cookies of Set-Cookie and Set-Cookie2 alone. And the transport's errors come with
        # their request.
        if not isinstance(request.stream, httpx.AsyncByteStream):
            return await super()._send_single_request(request)  # which refuses it
        asked_at = perf_counter()
        response = await self._transport_for_url(request.url).handle_async_request(request)
        assert isinstance(response, Reply)
        response.asked_at = asked_at
        response.request = request
        if response.has_cookies or type(self.cookies.jar) is not CookieJar:
            self.cookies.extract_cookies(response)
        response.default_encoding = self._default_encoding
        if _log.isEnabledFor(logging.INFO):
            _log.info(
                'HTTP Request: %s %s "%s %d %s"',
                request.method,
                request.url,
                response.http_version,
                response.status_code,
                response.reason_phrase,
            )
        return response


class _CheckedDigest(httpx.Auth):
    """Digest authentication whose error for a malformed challenge is httpx's, whatever is malformed."""

    def __init__(self, digest: httpx.DigestAuth) -> None:
        self._digest = digest

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response]:
        try:
            yield from self._digest.auth_flow(request)
        except (KeyError, ValueError, NotImplementedError) as error:
            raise httpx.RemoteProtocolError("Malformed Digest WWW-Authenticate header", request=request) from error
