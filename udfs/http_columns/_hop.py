"""Hop: a request as it is sent to one origin, and the one that follows a redirect."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Final, NamedTuple

import httpx

from ..http._origin import Origin, origin_of, origin_of_url
from ..http._redirects import redirect_request
from ..http._request_head import render_parts
from ..http._request_writer import RequestWriter
from ..http._url import plain_parts

__all__ = ["Headers", "Hop", "origin_of_text"]

Headers = tuple[tuple[bytes, bytes], ...]

_CACHED_ORIGINS: Final = 1_024
_CACHED_FIELDS: Final = 64
_WITH_LENGTH: Final = ("POST", "PUT", "PATCH")  # they have a Content-Length even without a body, as in httpx


@dataclass(eq=False, slots=True)
class Hop:
    """A request as it is sent to one origin.

    Attributes:
        origin: Where it goes.
        writer: Writes it.
        as_httpx: Makes the same request for httpx. Only a redirect needs it.
    """

    origin: Origin
    writer: RequestWriter
    as_httpx: Callable[[], httpx.Request]

    @classmethod
    def first(cls, method: str, url: str, headers: Headers, body: bytes) -> Hop:
        """Return the request of a row. A user and password in the URL become its authorization.

        Raises:
            httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError: The request is not valid. The message
                shows nothing of the URL.
        """
        origin, host, target, authorization = _address(url)
        fields = _fields(headers, host, authorization, method in _WITH_LENGTH, len(body))
        head = render_parts(method, target, fields)
        return cls(
            origin,
            RequestWriter.with_content(method, head, body, {}),
            partial(httpx.Request, method, url, headers=fields, stream=httpx.ByteStream(body)),
        )

    def after(self, status: int, location: str) -> Hop:
        """Return the request that follows a redirect, by httpx's rules.

        Raises:
            httpx.InvalidURL, httpx.UnsupportedProtocol: The Location is not usable. The message shows nothing of it.
        """
        request = self.as_httpx()
        _check_location(request.url, location)
        redirect = httpx.Response(status, headers={"Location": location})
        following = redirect_request(request, redirect, httpx.Cookies())
        return Hop(origin_of(following), RequestWriter.of(following), lambda: following)


class _Address(NamedTuple):
    """What a URL says: the origin, the host for its header, the target, and the authorization or `b""`."""

    origin: Origin
    host: bytes
    target: bytes
    authorization: bytes


def _address(url: str) -> _Address:
    scheme_and_authority, path, query = plain_parts(url) or (None, "", None)
    if scheme_and_authority is not None:  # the others pass through httpx's parser
        origin, host = _known_origin(scheme_and_authority)
        return _Address(origin, host, (path if query is None else f"{path}?{query}").encode(), b"")
    parsed = _parsed(url)
    authorization = b""
    if parsed.userinfo:
        authorization = b"Basic " + b64encode(f"{parsed.username}:{parsed.password}".encode())
    return _Address(origin_of_url(parsed), parsed.netloc, parsed.raw_path, authorization)


def origin_of_text(url: str) -> Origin | None:
    """Return the origin of a URL, or None if it is not a URL of HTTP."""
    try:
        return _address(url).origin
    except (httpx.InvalidURL, httpx.UnsupportedProtocol, UnicodeError):
        return None


@lru_cache(_CACHED_ORIGINS)
def _known_origin(scheme_and_authority: str) -> tuple[Origin, bytes]:
    parsed = _parsed(scheme_and_authority)
    return origin_of_url(parsed), parsed.netloc


def _parsed(url: str) -> httpx.URL:
    """Parse a URL.

    Raises:
        httpx.InvalidURL, httpx.UnsupportedProtocol: It is not a URL of HTTP. The message shows nothing of it.
    """
    try:
        parsed = httpx.URL(url)
        is_supported = parsed.scheme in {"http", "https"} and bool(parsed.host)
    except (httpx.InvalidURL, ValueError):  # ValueError: httpx cannot decode the host
        raise httpx.InvalidURL("the URL is not valid and cannot be read") from None
    if not is_supported:
        raise httpx.UnsupportedProtocol("the URL must start with http:// or https:// and name a host")
    return parsed


def _check_location(url: httpx.URL, location: str) -> None:
    try:
        target = url.join(location)
        is_supported = target.scheme in {"http", "https"} and bool(target.host)
    except (httpx.InvalidURL, ValueError):
        raise httpx.InvalidURL("the Location of a redirect is not a valid URL") from None
    if not is_supported:
        raise httpx.UnsupportedProtocol("the Location of a redirect must start with http:// or https://")


@lru_cache(_CACHED_FIELDS)
def _fields(headers: Headers, host: bytes, authorization: bytes, needs_length: bool, length: int) -> Headers:  # noqa: FBT001 - a key of the cache
    """Return all headers of a request: its own, and those that httpx adds."""
    names = {name.lower() for name, _ in headers}
    fields = [] if b"host" in names else [(b"Host", host)]
    fields += [header for header in headers if not (authorization and header[0].lower() == b"authorization")]
    if authorization:
        fields.append((b"Authorization", authorization))
    is_framed = b"content-length" in names or (not length and b"transfer-encoding" in names)
    if not is_framed and (length or needs_length):
        fields.append((b"Content-Length", b"%d" % length))
    return tuple(fields)
