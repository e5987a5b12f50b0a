"""RequestHead: the head of a request as bytes, and the framing of its body."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

import httpx

__all__ = ["RequestHead", "render_head", "render_parts"]

_LINE: Final = re.compile(rb"[-!#$%&'*+.^_`|~0-9a-zA-Z]+ [\x21-\x7e]+")

# Header lines as in RFC 9112, and values as in h11: without NUL, and with no whitespace but blanks and tabs inside. The
# pattern matches all lines at once, so a line end inside a value would pass as a further line: the lines are counted.
_FIELDS: Final = re.compile(rb"(?:[-!#$%&'*+.^_`|~0-9a-zA-Z]+: (?:[^\x00\s](?:[^\x00\r\n\v\f]*[^\x00\s])?)?\r\n)*")

_CLOSE: Final = re.compile(rb"^connection:[^\r]*\bclose\b", re.IGNORECASE | re.MULTILINE)

_CACHED: Final = 64  # most requests have the same headers as an earlier one

Headers = tuple[tuple[bytes, bytes], ...]


class RequestHead(NamedTuple):
    """The head of a request.

    Attributes:
        data: The request line, the headers and the empty line after them.
        content_length: Bytes of the body. None: the body is sent in chunks.
        closes_connection: Whether the request asks the server to close the connection after it.
    """

    data: bytes
    content_length: int | None
    closes_connection: bool


def render_head(request: httpx.Request) -> RequestHead:
    """Return the head of a request, as it is sent. Raises as `render_parts`."""
    target = request.extensions.get("target") or request.url.raw_path
    return render_parts(request.method, target, tuple(request.headers.raw))


def render_parts(method: str, target: bytes, headers: Headers) -> RequestHead:
    """Return the head of a request with this method, target and headers, as it is sent.

    Raises:
        httpx.LocalProtocolError: The method, the target or a header is not valid in HTTP, or could be read as a second
            request; or the headers do not determine the length of the body or the host.
    """
    if method == "CONNECT":
        raise httpx.LocalProtocolError("CONNECT opens a tunnel, and this client connects to the origin itself")
    line = b"%b %b" % (method.encode(), target)
    if _LINE.fullmatch(line) is None:
        raise httpx.LocalProtocolError(f"illegal method or target: {line!r}")
    fields, content_length, closes_connection = _render_fields(headers)
    return RequestHead(b"%b HTTP/1.1\r\n%b\r\n" % (line, fields), content_length, closes_connection)


@lru_cache(_CACHED)
def _render_fields(headers: Headers) -> tuple[bytes, int | None, bool]:
    names = [name.lower() for name, _ in headers]
    if names.count(b"host") == 1:  # RFC 9110 recommends that it comes first
        first = names.index(b"host")
        headers = (headers[first], *headers[:first], *headers[first + 1 :])
    fields = b"".join([b"%b: %b\r\n" % header for header in headers])
    if _FIELDS.fullmatch(fields) is None or fields.count(b"\n") != len(headers):
        raise httpx.LocalProtocolError(_illegal_header(headers))
    if names.count(b"host") != 1:
        raise httpx.LocalProtocolError(f"a request must have one Host header, got {names.count(b'host')}")
    return fields, _content_length(headers), _CLOSE.search(fields) is not None


def _content_length(headers: Headers) -> int | None:
    lengths = [value for name, value in headers if name.lower() == b"content-length"]
    codings = [value.lower() for name, value in headers if name.lower() == b"transfer-encoding"]
    if codings:
        if codings != [b"chunked"] or lengths:
            raise httpx.LocalProtocolError("Transfer-Encoding must be chunked, once, and without a Content-Length")
        return None
    if len(lengths) > 1 or not all(length.isdigit() for length in lengths):
        raise httpx.LocalProtocolError(f"Content-Length must be one number, got {lengths!r}")
    return int(lengths[0]) if lengths else 0


def _illegal_header(headers: Headers) -> str:
    for name, value in headers:
        if b"\n" in name or _FIELDS.fullmatch(b"%b: \r\n" % name) is None:
            return f"illegal header name {name!r}"
        if b"\n" in value or _FIELDS.fullmatch(b"a: %b\r\n" % value) is None:
            return f"illegal value of the header {name.decode()}"  # the value may be a secret
    return "illegal headers"
