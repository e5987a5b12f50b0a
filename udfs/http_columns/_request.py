"""Request: the HTTP request of one row, as it is in the row and as it is sent."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable
from functools import lru_cache
from typing import Any, Final

from ..http._origin import Origin
from ..http._request_writer import IDEMPOTENT
from ._hop import Headers as EncodedHeaders
from ._hop import Hop, origin_of_text
from ._response import AttemptError

__all__ = ["Request", "check_header"]

Headers = Iterable[tuple[str, str | None]]

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FORBIDDEN: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")

_CACHED: Final = 64  # most requests have the same headers as an earlier one


class Request:
    """The request of one row, and the state of its attempts.

    Its repr, which appears in errors and logs, shows neither URL nor headers, because both may contain secrets.

    Args:
        method: A method such as "GET", in upper or lower case.
        url: A URL with http:// or https://.
        headers: The row's own headers. One whose value is None is not sent.
        body: Bytes, or text, which is sent as UTF-8.

    Attributes:
        last: The outcome of the last attempt if it was raised as an `AttemptError`; None during an attempt.
        deadline: On Trio's clock; set at the first attempt.
        prepared: The request as it is sent; made at the first attempt.
        was_redirected: Whether the attempt was redirected.
    """

    __slots__ = ("_body", "_headers", "deadline", "last", "method", "prepared", "url", "was_redirected")

    def __init__(self, method: str, url: str, headers: Headers = (), body: Any = None) -> None:
        self.method = method.upper()
        self.url = url
        self._headers = tuple((name, value) for name, value in headers if value is not None)
        self._body: str | bytes | None = body
        self.last: AttemptError | None = None
        self.deadline = math.inf
        self.prepared: Hop | None = None
        self.was_redirected = False

    def __repr__(self) -> str:
        return f"<{self.method} request>"

    @property
    def origin(self) -> Origin | None:
        """The origin of its URL, by which gates per host are chosen; None if the URL is not valid."""
        return origin_of_text(self.url.strip()) if self.prepared is None else self.prepared.origin

    @property
    def is_plain_get(self) -> bool:
        """Whether URL and headers determine the request."""
        return self.method == "GET" and self._body is None

    @property
    def is_idempotent(self) -> bool:
        """Whether it may be sent twice: because of its method, or because the service recognizes its key."""
        return self.method in IDEMPOTENT or any(name.lower() == "idempotency-key" for name, _ in self._headers)

    def cache_key(self) -> Hashable:
        """Return what distinguishes one plain GET from another."""
        return self.url, self._headers

    def prepare(self, common: tuple[tuple[str, str], ...], deadline: float) -> None:
        """Prepare for an attempt.

        Args:
            common: Headers of every request. The row's own replace those of the same name.
            deadline: The request's deadline, if this is its first attempt.

        Raises:
            httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError, ValueError: The request is not valid.
                The message shows no secret.
        """
        self.was_redirected = False
        if self.prepared is not None:
            return
        self.deadline = deadline
        if not _TOKEN.fullmatch(self.method):
            raise ValueError("the method must be a word such as GET")
        body = self._body.encode() if isinstance(self._body, str) else self._body
        self.prepared = Hop.first(self.method, self.url.strip(), _merged(common, self._headers), body or b"")


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


@lru_cache(_CACHED)
def _merged(common: tuple[tuple[str, str], ...], own: tuple[tuple[str, str], ...]) -> EncodedHeaders:
    merged: dict[str, tuple[bytes, bytes]] = {}
    for name, value in (*common, *own):
        check_header(name, value)
        merged[name.lower()] = (name.encode(), value.strip(" \t").encode())
    return tuple(merged.values())
