"""The HTTP request of a row: its parts as they stand in the row, and as httpx takes them."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable
from typing import Any, Final

import httpx

from ..http._request_writer import IDEMPOTENT
from ._answer import RetryableError

__all__ = ["Request", "check_header"]

Headers = Iterable[tuple[str, str | None]]

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FORBIDDEN: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class Request:
    """One row's request, and how far it has come.

    Its repr, which is in errors and logs, shows neither URL nor headers: both may have secrets.

    Args:
        method: Such as "GET", in upper or lower case.
        url: With http:// or https://. None for it or for the method: there is no request.
        headers: The row's own; one whose value is None is not sent.
        body: Text is sent as UTF-8.

    Attributes:
        last: The outcome of the last attempt, if it was worth another; None while one is under way.
        deadline: On Trio's clock; known from the first attempt on.
        prepared: As httpx takes it; made at the first attempt.
        was_redirected: Whether the attempt has been redirected.
    """

    __slots__ = ("_body", "_headers", "deadline", "last", "method", "prepared", "url", "was_redirected")

    def __init__(self, method: str | None, url: str | None, headers: Headers = (), body: Any = None) -> None:
        self.method = None if method is None else method.upper()
        self.url = url
        self._headers = tuple((name, value) for name, value in headers if value is not None)
        self._body: str | bytes | None = body
        self.last: RetryableError | None = None
        self.deadline = math.inf
        self.prepared: httpx.Request | None = None
        self.was_redirected = False

    def __repr__(self) -> str:
        return f"<{self.method} request>"

    @property
    def is_null(self) -> bool:
        """Whether there is nothing to ask."""
        return self.method is None or self.url is None

    @property
    def is_plain_get(self) -> bool:
        """Whether its URL and headers are all that there is to it."""
        return self.method == "GET" and self._body is None

    @property
    def is_idempotent(self) -> bool:
        """Whether it may be sent twice: by its method, or because the service knows it again by its key."""
        return self.method in IDEMPOTENT or any(name.lower() == "idempotency-key" for name, _ in self._headers)

    def cache_key(self) -> Hashable:
        """What tells a plain GET from another."""
        return self.url, self._headers

    def begin(self, http: httpx.AsyncClient, common: Headers, deadline: float) -> None:
        """Before each attempt.

        Args:
            http: The client.
            common: Headers for every request.
            deadline: That of a first attempt.

        Raises:
            httpx.InvalidURL, httpx.UnsupportedProtocol, ValueError: It can never be sent. Shows no secret.
        """
        self.was_redirected = False
        if self.prepared is not None:
            return
        self.deadline = deadline
        assert self.method is not None
        assert self.url is not None
        if not _TOKEN.fullmatch(self.method):
            raise ValueError("the method must be a word such as GET")
        body = self._body.encode() if isinstance(self._body, str) else self._body
        self.prepared = http.build_request(
            self.method, _parsed(self.url), headers=_merged(common, self._headers), content=body
        )


def check_header(name: object, value: object) -> None:
    """Check that it can be sent.

    Raises:
        TypeError, ValueError: It cannot; the message shows neither the value nor a name that may hold one.
    """
    if not isinstance(name, str) or not isinstance(value, str):
        raise TypeError("headers must map names to values, both of them strings")
    if not _TOKEN.fullmatch(name):
        raise ValueError("the name of a header has a character that it must not have")
    if _FORBIDDEN.search(value):
        raise ValueError(f"the value of the header {name!r} has a control character")


def _merged(common: Headers, own: Headers) -> list[tuple[bytes, bytes]]:
    merged: dict[str, tuple[bytes, bytes]] = {}
    for name, value in (*common, *own):
        check_header(name, value)
        assert value is not None
        merged[name.lower()] = (name.encode(), value.strip(" \t").encode())
    return list(merged.values())


def _parsed(url: str) -> httpx.URL:
    """The URL.

    Raises:
        httpx.InvalidURL, httpx.UnsupportedProtocol: It is none that can be asked. Shows nothing of it.
    """
    try:
        parsed = httpx.URL(url.strip())
    except (httpx.InvalidURL, ValueError):
        raise httpx.InvalidURL("the URL cannot be read") from None
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        raise httpx.UnsupportedProtocol("the URL must start with http:// or https:// and name a host")
    return parsed
