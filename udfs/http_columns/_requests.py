"""HttpRequest: the HTTP request of one row. Hop: that request as it is sent to one origin, and after a redirect."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

import httpx

from ..http._request import IDEMPOTENT
from ..http._url import Origin, origin_of_url, plain_parts
from ._outcome import AttemptError

TextHeaders = Iterable[tuple[str, str | None]]
TextPairs = tuple[tuple[str, str], ...]
Headers = tuple[tuple[bytes, bytes], ...]

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FORBIDDEN: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")

_CACHED_ROOTS: Final = 1_024
_CACHED_HEADERS: Final = 64  # most requests have the same headers as an earlier one
_MOVED: Final = 301
_TO_GET: Final = (302, 303)
_OF_BODY: Final = (b"content-encoding", b"content-language", b"content-type")


class HttpRequest:
    """The request of one row, and the state of its attempts.

    Its repr, which appears in errors and logs, shows neither URL nor headers, because both may contain secrets.

    Args:
        method: A method such as "GET", in upper or lower case.
        url: A URL with http:// or https://.
        headers: The row's own headers. One whose value is None is not sent.
        body: Bytes, or text, which is sent as UTF-8.

    Attributes:
        last: The outcome of the last attempt if it was raised as an `AttemptError`; None during an attempt.
        was_redirected: Whether the attempt was redirected.
    """

    __slots__ = ("_body", "_headers", "_target", "last", "method", "url", "was_redirected")

    def __init__(self, method: str, url: str, headers: TextHeaders = (), body: Any = None) -> None:
        self.method = method.upper()
        self.url = url.strip()
        self._headers = tuple((name, value) for name, value in headers if value is not None)
        self._body: str | bytes | None = body
        self._target: Target | None = None
        self.last: AttemptError | None = None
        self.was_redirected = False

    def __repr__(self) -> str:
        return f"<{self.method} request>"

    @property
    def target(self) -> Target:
        """The parts of its URL, which is parsed once.

        Raises:
            httpx.InvalidURL, httpx.UnsupportedProtocol: The URL is not one of HTTP. The message shows nothing of it.
        """
        if self._target is None:
            self._target = Target.of(self.url)
        return self._target

    @property
    def origin(self) -> Origin | None:
        """The origin of its URL, by which gates per host are chosen; None if the URL is not valid."""
        try:
            return self.target.origin
        except (httpx.InvalidURL, httpx.UnsupportedProtocol):
            return None

    @property
    def is_plain_get(self) -> bool:
        """Whether URL and headers determine the request."""
        return self.method == "GET" and self._body is None

    @property
    def is_idempotent(self) -> bool:
        """Whether it may be sent twice: because of its method, or because the service recognizes its key."""
        return self.method in IDEMPOTENT or any(name.lower() == "idempotency-key" for name, _ in self._headers)

    @property
    def names_host(self) -> bool:
        """Whether the row has a Host header of its own."""
        return any(name.lower() == "host" for name, _ in self._headers)

    def cache_key(self) -> Hashable:
        """Return what distinguishes one plain GET from another."""
        return self.url, self._headers

    def check(self) -> None:
        """Check the URL, the method and the row's own headers.

        Raises:
            httpx.InvalidURL, httpx.UnsupportedProtocol, ValueError: One is not valid. The message shows no secret.
        """
        _ = self.target
        if not _TOKEN.fullmatch(self.method):
            raise ValueError("the method must be a word such as GET")
        _merged((), self._headers)

    def first_hop(self, common: TextPairs) -> Hop:
        """Return the request for an attempt.

        Args:
            common: The configured headers. The row's own replace those of the same name.
        """
        body = self._body.encode() if isinstance(self._body, str) else self._body
        return Hop.to(self.target, self.method, _merged(common, self._headers), body or b"")


class Target(NamedTuple):
    """A URL, and the parts of it that a request needs.

    Attributes:
        url: The URL.
        origin: Where the request goes.
        authorization: The user and the password of the URL, as a value of Authorization; `b""` without.
    """

    url: str
    origin: Origin
    authorization: bytes = b""

    @classmethod
    def of(cls, url: str) -> Target:
        """Return the parts of a URL.

        Raises:
            httpx.InvalidURL, httpx.UnsupportedProtocol: It is not a URL of HTTP. The message shows nothing of it.
        """
        root, _ = plain_parts(url) or (None, "")
        if root is not None:
            return cls(url, _origin_of_root(root))
        parsed = _parsed(url)
        authorization = b""
        if parsed.userinfo:
            authorization = b"Basic " + b64encode(f"{parsed.username}:{parsed.password}".encode())
        return cls(url, origin_of_url(parsed), authorization)

    def joined(self, location: str) -> Target:
        """Return the target of a redirect from this one. A user in the Location is dropped.

        Raises:
            httpx.InvalidURL, httpx.UnsupportedProtocol: The Location is not usable. The message shows nothing of it.
        """
        try:
            url = httpx.URL(self.url).join(location).copy_with(userinfo=b"", fragment=None)
            return Target.of(str(url))
        except httpx.UnsupportedProtocol:
            raise httpx.UnsupportedProtocol("the Location of a redirect must start with http:// or https://") from None
        except (httpx.InvalidURL, ValueError):
            raise httpx.InvalidURL("the Location of a redirect is not a valid URL") from None


@dataclass(eq=False, slots=True)
class Hop:
    """A request as it is sent to one origin.

    Attributes:
        target: Where it goes.
        method: Such as "GET".
        headers: Those that differ from httpx's own.
        body: The body; `b""` for none.
    """

    target: Target
    method: str
    headers: Headers
    body: bytes

    @classmethod
    def to(cls, target: Target, method: str, headers: Headers, body: bytes) -> Hop:
        """Return a request. A user and password in the URL become its authorization.

        Args:
            target, method, body: As above.
            headers: The headers of the row and the configured ones.
        """
        if target.authorization:
            others = (header for header in headers if header[0].lower() != b"authorization")
            headers = (*others, (b"Authorization", target.authorization))
        return cls(target, method, headers, body)

    def after(self, status: int, location: str) -> Hop:
        """Return the request that follows a redirect, by httpx's rules for the method and the body.

        Another origin gets no header of the row and no configured one, except those that describe the body: any of
        them may be a secret. As in httpx, a redirect from http:// to https:// on the same host, both on their default
        ports, is not to another origin.

        Raises:
            httpx.InvalidURL, httpx.UnsupportedProtocol: The Location is not usable. The message shows nothing of it.
        """
        target, method = self.target.joined(location), self.method
        if (status in _TO_GET and method != "HEAD") or (status == _MOVED and method == "POST"):
            method = "GET"
        body = self.body if method == self.method else b""
        if _may_share_headers(self.target.origin, target.origin):
            dropped = {b"cookie", b"content-length", b"transfer-encoding"} if not body else {b"cookie"}
            dropped |= set() if target.origin == self.target.origin else {b"host"}
            headers = tuple(header for header in self.headers if header[0].lower() not in dropped)
        else:
            headers = tuple(header for header in self.headers if body and header[0].lower() in _OF_BODY)
        return Hop.to(target, method, headers, body)


def check_header(name: object, value: object) -> None:
    """Check that a header can be sent.

    Raises:
        TypeError, ValueError: It cannot. The message shows neither the value nor a name that may contain one.
    """
    if not isinstance(name, str) or not isinstance(value, str):
        raise TypeError("headers must map names to values, both of them strings")
    if not _TOKEN.fullmatch(name):
        raise ValueError("the name of a header contains a character that is not allowed")
    if _FORBIDDEN.search(value):
        raise ValueError(f"the value of the header {name!r} has a control character")


def _may_share_headers(before: Origin, after: Origin) -> bool:
    """Whether two origins are the same, or the second one is the first one with TLS, both on their default ports."""
    return before == after or (before == Origin(b"http", after.host, 80) and after == Origin(b"https", after.host, 443))


@lru_cache(_CACHED_ROOTS)
def _origin_of_root(root: str) -> Origin:
    return origin_of_url(_parsed(root))


def _parsed(url: str) -> httpx.URL:
    try:
        parsed = httpx.URL(url)
        has_host = bool(parsed.host)
    except (httpx.InvalidURL, ValueError):  # ValueError: httpx cannot decode the host
        raise httpx.InvalidURL("the URL is not valid and cannot be read") from None
    if parsed.scheme not in {"http", "https"} or not has_host:
        raise httpx.UnsupportedProtocol("the URL must start with http:// or https:// and name a host")
    return parsed


@lru_cache(_CACHED_HEADERS)
def _merged(common: TextPairs, own: TextPairs) -> Headers:
    merged: dict[bytes, tuple[bytes, bytes]] = {}
    for name, value in (*common, *own):
        check_header(name, value)
        merged[name.lower().encode()] = (name.encode(), value.strip(" \t").encode())
    return tuple(merged.values())
