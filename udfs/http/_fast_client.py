"""FastClient: an `httpx.AsyncClient` in which the usual request takes a shorter way.

Two public methods are overridden, because in httpx they take more than half of the CPU time of a request:

* `build_request`: a URL that is plain is not parsed, and headers that equal those of an earlier request are not merged.
* `send`: a request without authentication, event hooks and mounts goes directly to the transport.

Everything else is httpx's: all other requests, every redirect, cookies, authentication, mounts and proxies. The bytes
of a request are the same on both ways.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import lru_cache
from http.cookiejar import CookieJar
from time import perf_counter
from typing import Any, Final

import httpx

from ._response import BoundedResponse
from ._transport import ANSWERED, BoundedTransport
from ._url import PlainURL, parsed_root, plain_parts

_log: Final = logging.getLogger("httpx")  # httpx documents the name of its logger
_DEFAULT: Final = httpx.USE_CLIENT_DEFAULT
_CACHED_HEADERS: Final = 64  # most requests have the same headers as an earlier one
_MAX_BASE_LENGTH: Final = 2_048


class FastClient(httpx.AsyncClient):
    """Behaves as `httpx.AsyncClient`.

    Args:
        transport: Sends the requests to which no mount applies.
        mounts: Transports for some URLs.
        default_encoding: As for `httpx.AsyncClient`.
        options: Other options of `httpx.AsyncClient`.
    """

    def __init__(
        self,
        *,
        transport: BoundedTransport,
        mounts: Mapping[str, BoundedTransport | None],
        default_encoding: Any = "utf-8",
        **options: Any,
    ) -> None:
        super().__init__(transport=transport, mounts=mounts, default_encoding=default_encoding, **options)
        self._direct = None if mounts else transport
        self._charset = default_encoding
        self._has_sent = False

    def build_request(self, method: str, url: httpx.URL | str, **options: Any) -> httpx.Request:
        """Build and return a request instance; see `httpx.AsyncClient.build_request`."""
        given = {name for name, value in options.items() if not (value is None or value is _DEFAULT)}
        if options.get("timeout", _DEFAULT) is None:  # no timeout, in contrast to the client's
            given.add("timeout")
        has_parameters = bool("params" in given or "cookies" in given or self.params or self.cookies)
        parts = None if has_parameters else self._plain_parts(url)
        if parts is None:
            return super().build_request(method, url, **options)
        root, target = parts
        request = super().build_request(method, root, **options) if given else self._bare_request(method, root)
        request.url = PlainURL(root, target)  # httpx has seen the root only, which has all that it needs of the URL
        return request

    def _plain_parts(self, url: object) -> tuple[httpx.URL, str] | None:
        """Return the parts of a `PlainURL`, joined with the base URL; None if the result would not be plain."""
        parts = plain_parts(url)
        if parts is None:
            return None
        root, target = parts
        if root is not None:
            return parsed_root(root), target
        base = self.base_url.raw_path.decode()
        if not self.base_url.raw_host or target.startswith("//") or len(base) > _MAX_BASE_LENGTH:
            return None
        return self.base_url, base + target[1:]

    def _bare_request(self, method: str, root: httpx.URL) -> httpx.Request:
        """Return a request to a root with nothing but the client's own headers and timeout."""
        headers = _headers_without_body(method, root.raw_scheme, root.netloc, tuple(self.headers.raw))
        extensions = {"timeout": self.timeout.as_dict()}
        request = httpx.Request(method, root, headers=headers, stream=httpx.ByteStream(b""), extensions=extensions)
        request.read()
        return request

    async def send(
        self, request: httpx.Request, *, stream: bool = False, auth: Any = _DEFAULT, follow_redirects: Any = _DEFAULT
    ) -> httpx.Response:
        """Send a request; see `httpx.AsyncClient.send`. A redirect is followed, or not, by httpx."""
        # The first request passes through httpx, which counts the client as opened from then on
        if self._direct is not None and self._has_sent and self._is_usual(request, auth):
            sent_at = perf_counter()
            response = await self._direct.answer(request)
            response.sent_at = sent_at
            if not response.has_redirect_location:
                return await self._completed(request, response, stream=stream)
            request.extensions[ANSWERED] = response
        self._has_sent = True
        return await super().send(request, stream=stream, auth=auth, follow_redirects=follow_redirects)

    def _is_usual(self, request: httpx.Request, auth: Any) -> bool:
        """Whether nothing but a redirect needs httpx's loop."""
        return (
            (auth is _DEFAULT or auth is None)
            and self.auth is None
            and not request.url.userinfo
            and not any(self.event_hooks.values())
            and not self.is_closed
            and self.max_redirects >= 0
            and "timeout" in request.extensions
            and isinstance(request.stream, httpx.AsyncByteStream)
        )

    async def _completed(self, request: httpx.Request, response: BoundedResponse, *, stream: bool) -> httpx.Response:
        """Do what httpx does with each response."""
        response.request, response.default_encoding = request, self._charset
        if response.has_cookies or type(self.cookies.jar) is not CookieJar:
            self.cookies.extract_cookies(response)
        if _log.isEnabledFor(logging.INFO):
            shown = request.method, request.url, response.http_version, response.status_code
            _log.info('HTTP Request: %s %s "%s %d %s"', *shown, response.reason_phrase)
        if not stream:
            try:
                await response.aread()
            except BaseException:
                await response.aclose()
                raise
        return response


@lru_cache(_CACHED_HEADERS)
def _headers_without_body(
    method: str, scheme: bytes, authority: bytes, common: tuple[tuple[bytes, bytes], ...]
) -> httpx.Headers:
    """Return the headers of a request without a body. httpx copies them for each request."""
    return httpx.Request(method, f"{scheme.decode()}://{authority.decode()}", headers=httpx.Headers(common)).headers
