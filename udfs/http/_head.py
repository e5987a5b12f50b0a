"""The head of a request, as bytes, and how its body is framed."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

import httpx

__all__ = ["Head", "rendered"]

_LINE: Final = re.compile(rb"[-!#$%&'*+.^_`|~0-9a-zA-Z]+ [\x21-\x7e]+")

# Header lines as RFC 9112 has them, with h11's view of a value: no NUL, no space but blanks and tabs inside. It holds
# for all of them at once, so a line end inside a value would pass for the next line: the lines are counted.
_FIELDS: Final = re.compile(rb"(?:[-!#$%&'*+.^_`|~0-9a-zA-Z]+: (?:[^\x00\s](?:[^\x00\r\n\v\f]*[^\x00\s])?)?\r\n)*")

_CLOSE: Final = re.compile(rb"^connection:[^\r]*\bclose\b", re.IGNORECASE | re.MULTILINE)

_KEPT: Final = 64  # most headers are those of the request before

Headers = tuple[tuple[bytes, bytes], ...]


class Head(NamedTuple):
    """The head of a request.

    Attributes:
        data: The request line, the headers and the empty line after them.
        length: Of the body, in bytes; None: it goes in chunks.
        is_last: Whether the request asks the server to close the connection after it.
    """

    data: bytes
    length: int | None
    is_last: bool


def rendered(request: httpx.Request) -> Head:
    """The head, as it is sent.

    Raises:
        httpx.LocalProtocolError: It is not HTTP, or there would be two requests in it; or the headers leave open
            how long the body is, or for which host the request.
    """
    line = b"%b %b" % (request.method.encode(), request.extensions.get("target") or request.url.raw_path)
    if _LINE.fullmatch(line) is None:
        raise httpx.LocalProtocolError(f"illegal method or target: {line!r}")
    fields, length, is_last = _rendered(tuple(request.headers.raw))
    return Head(b"%b HTTP/1.1\r\n%b\r\n" % (line, fields), length, is_last)


@lru_cache(_KEPT)
def _rendered(headers: Headers) -> tuple[bytes, int | None, bool]:
    names = [name.lower() for name, _ in headers]
    if names.count(b"host") == 1:  # it goes first, as RFC 9110 asks for
        first = names.index(b"host")
        headers = (headers[first], *headers[:first], *headers[first + 1 :])
    fields = b"".join([b"%b: %b\r\n" % header for header in headers])
    if _FIELDS.fullmatch(fields) is None or fields.count(b"\n") != len(headers):
        raise httpx.LocalProtocolError(_illegal(headers))
    if names.count(b"host") != 1:
        raise httpx.LocalProtocolError(f"there must be one Host header, there are {names.count(b'host')}")
    return fields, _length(headers), _CLOSE.search(fields) is not None


def _length(headers: Headers) -> int | None:
    lengths = [value for name, value in headers if name.lower() == b"content-length"]
    codings = [value.lower() for name, value in headers if name.lower() == b"transfer-encoding"]
    if codings:
        if codings != [b"chunked"] or lengths:
            raise httpx.LocalProtocolError("Transfer-Encoding must be chunked, once, and without a Content-Length")
        return None
    if len(lengths) > 1 or not all(length.isdigit() for length in lengths):
        raise httpx.LocalProtocolError(f"Content-Length must be one number, got {lengths!r}")
    return int(lengths[0]) if lengths else 0


def _illegal(headers: Headers) -> str:
    for name, value in headers:
        if b"\n" in name or _FIELDS.fullmatch(b"%b: \r\n" % name) is None:
            return f"illegal header name {name!r}"
        if b"\n" in value or _FIELDS.fullmatch(b"a: %b\r\n" % value) is None:
            return f"illegal value of the header {name.decode()}"  # which may be a secret
    return "illegal headers"
