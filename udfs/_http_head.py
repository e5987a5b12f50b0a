"""The head of a request, as bytes, and how its body is framed."""

from __future__ import annotations

import re
from typing import Final

import httpx

__all__ = ["is_last", "rendered"]

# A request line and header lines as RFC 9112 has them, with h11's view of a value: no NUL, no space but blanks and tabs
# inside. It holds for the whole head at once, so a line end inside a value would pass for the next line: the lines
# are counted.
_HEAD: Final = re.compile(
    rb"[-!#$%&'*+.^_`|~0-9a-zA-Z]+ [\x21-\x7e]+ HTTP/1\.1\r\n"
    rb"(?:[-!#$%&'*+.^_`|~0-9a-zA-Z]+: (?:[^\x00\s](?:[^\x00\r\n\v\f]*[^\x00\s])?)?\r\n)*\r\n"
)

_CLOSE: Final = re.compile(rb"\r\nconnection:[^\r]*\bclose\b", re.IGNORECASE)


def is_last(head: bytes) -> bool:
    """Whether the request asks the server to close the connection after it."""
    return _CLOSE.search(head) is not None


def rendered(request: httpx.Request) -> tuple[bytes, int | None]:
    """The request line, the headers and the empty line after them; and the length of the body, None if in chunks.

    Raises:
        httpx.LocalProtocolError: They are not HTTP, or there would be two requests in them; or the headers leave open
            how long the body is, or for which host the request.
    """
    method, target = request.method.encode(), request.extensions.get("target") or request.url.raw_path
    headers = request.headers.raw
    names = [name.lower() for name, _ in headers]
    if b"host" in names[1:]:  # it goes first, as RFC 9110 asks for
        headers.insert(0, headers.pop(names.index(b"host", 1)))
    head = b"%b %b HTTP/1.1\r\n%b\r\n" % (method, target, b"".join([b"%b: %b\r\n" % header for header in headers]))
    if _HEAD.fullmatch(head) is None or head.count(b"\n") != len(headers) + 2:
        raise httpx.LocalProtocolError(_illegal(method, target, headers))
    if names.count(b"host") != 1:
        raise httpx.LocalProtocolError(f"there must be one Host header, there are {names.count(b'host')}")
    return head, _length(headers, names)


def _length(headers: list[tuple[bytes, bytes]], names: list[bytes]) -> int | None:
    if b"content-length" not in names and b"transfer-encoding" not in names:
        return 0
    lengths = [value for name, value in headers if name.lower() == b"content-length"]
    if b"transfer-encoding" in names:
        codings = [value.lower() for name, value in headers if name.lower() == b"transfer-encoding"]
        if codings != [b"chunked"] or lengths:
            raise httpx.LocalProtocolError("Transfer-Encoding must be chunked, once, and without a Content-Length")
        return None
    if len(lengths) > 1 or not all(length.isdigit() for length in lengths):
        raise httpx.LocalProtocolError(f"Content-Length must be one number, got {lengths!r}")
    return int(lengths[0])


def _illegal(method: bytes, target: bytes, headers: list[tuple[bytes, bytes]]) -> str:
    for name, value in headers:
        if b"\n" in name or _HEAD.fullmatch(b"GET / HTTP/1.1\r\n%b: \r\n\r\n" % name) is None:
            return f"illegal header name {name!r}"
        if b"\n" in value or _HEAD.fullmatch(b"GET / HTTP/1.1\r\na: %b\r\n\r\n" % value) is None:
            return f"illegal value of the header {name.decode()}"  # which may be a secret
    return f"illegal method or target: {method!r} {target!r}"
