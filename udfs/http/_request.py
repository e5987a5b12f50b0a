"""RequestWriter: one request, checked and written to a stream."""

from __future__ import annotations

import math
import re
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable
from functools import lru_cache
from typing import Any, Final, NamedTuple

import httpx
import trio

from ._dial import Stream

# RFC 9110, section 9.2.2
IDEMPOTENT: Final = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PUT", "TRACE"})

_SHORT: Final = 64 * 1024  # bytes of a request that the kernel takes even if the server does not read

_LINE: Final = re.compile(rb"[-!#$%&'*+.^_`|~0-9a-zA-Z]+ [\x21-\x7e]+")

# Header lines as in RFC 9112, and values as in h11: without NUL, and with no whitespace but blanks and tabs inside. The
# pattern matches all lines at once, so a line end inside a value would pass as a further line: the lines are counted.
_FIELDS: Final = re.compile(rb"(?:[-!#$%&'*+.^_`|~0-9a-zA-Z]+: (?:[^\x00\s](?:[^\x00\r\n\v\f]*[^\x00\s])?)?\r\n)*")

_CLOSE: Final = re.compile(rb"^connection:[^\r]*\bclose\b", re.IGNORECASE | re.MULTILINE)

_CACHED: Final = 64  # most requests have the same headers as an earlier one

Headers = tuple[tuple[bytes, bytes], ...]


class RequestWriter:
    """Writes one request, head and body.

    Args:
        method: Such as "GET".
        start: The head, and the body if it is in memory.
        timeouts: Seconds for each step, by httpx's names of the steps.
        closes_connection: Whether the request asks the server to close the connection after it.
        body: The rest of the body; None if `start` has all of it.
        length: Bytes of `body`; None: it is sent in chunks.

    Attributes:
        method, timeouts, closes_connection: As above.
        may_block: Whether writing can wait for the server, so that the response must be watched meanwhile.
        is_repeatable: Whether the request may be sent twice: it is idempotent, and its body is in memory.
    """

    def __init__(
        self,
        method: str,
        start: bytes,
        timeouts: dict[str, float | None],
        *,
        closes_connection: bool = False,
        body: AsyncIterable[bytes] | None = None,
        length: int | None = 0,
    ) -> None:
        self.method = method
        self._start = start
        self.timeouts = timeouts
        self.closes_connection = closes_connection
        self._body = body
        self._length = length
        self.may_block = body is not None or len(start) > _SHORT
        self.is_repeatable = method in IDEMPOTENT and (body is None or isinstance(body, httpx.ByteStream))

    @classmethod
    def of(cls, request: Any, in_memory: type[Iterable[bytes]] = httpx.ByteStream) -> RequestWriter:
        """Return the writer of a request, after all checks that can be made before sending.

        Args:
            request: The request, of httpx or httpx2.
            in_memory: The class of its body if that is in memory.

        Raises:
            httpx.LocalProtocolError: The request is not valid in HTTP/1.1, or the length of its body differs from its
                Content-Length.
        """
        target = request.extensions.get("target") or request.url.raw_path
        start, length, closes_connection = render_head(request.method, target, tuple(request.headers.raw))
        body: AsyncIterable[bytes] | None = request.stream
        if isinstance(body, in_memory):
            content = b"".join(body)
            if length is None:
                body = httpx.ByteStream(content)
            elif len(content) == length:
                start, body, length = start + content, None, 0
            else:
                raise _wrong_length(len(content), length)
        timeouts = request.extensions.get("timeout", {})
        return cls(request.method, start, timeouts, closes_connection=closes_connection, body=body, length=length)

    async def write(self, stream: Stream) -> bool:
        """Write the request. Returns False if the server closed the connection, maybe after an early response.

        Raises:
            httpx.WriteTimeout: The server did not read a part in time.
            httpx.LocalProtocolError: The length of the body differs from its Content-Length.
            Exception: Any error of the body itself.
        """
        try:
            await self._write(stream, self._start)
            if self._body is not None:
                await self._write_body(stream, self._body)
        except _ServerHungUpError:
            return False
        return True

    async def _write_body(self, stream: Stream, body: AsyncIterable[bytes]) -> None:
        parts = aiter(body)
        try:
            await (self._write_chunks(stream, parts) if self._length is None else self._write_parts(stream, parts))
        finally:
            if isinstance(parts, AsyncGenerator):  # the garbage collector would be too late, and Trio warns of that
                await parts.aclose()

    async def _write_chunks(self, stream: Stream, parts: AsyncIterator[bytes]) -> None:
        async for part in parts:
            if part:  # an empty chunk would be the last one
                await self._write(stream, b"%x\r\n%b\r\n" % (len(part), part))
        await self._write(stream, b"0\r\n\r\n")

    async def _write_parts(self, stream: Stream, parts: AsyncIterator[bytes]) -> None:
        assert self._length is not None
        written = 0
        async for part in parts:
            written += len(part)
            if written > self._length:
                raise _wrong_length(written, self._length)
            await self._write(stream, bytes(part))  # a copy of a bytearray, which may be reused for the next part
        if written < self._length:
            raise _wrong_length(written, self._length)

    async def _write(self, stream: Stream, data: bytes) -> None:
        try:
            if stream.send_now(data):
                return
            seconds = self.timeouts.get("write")
            with trio.move_on_after(math.inf if seconds is None else max(0.0, seconds)):
                await stream.drain()
                return
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise _ServerHungUpError from error
        raise httpx.WriteTimeout(f"write timeout of {seconds} s")


class _ServerHungUpError(Exception):
    """The connection is closed. The body of a request can raise Trio's errors, too, and those are not about it."""


def _wrong_length(size: int, length: int) -> httpx.LocalProtocolError:
    return httpx.LocalProtocolError(f"the body has {size:,} bytes, and its Content-Length is {length:,}")


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


def render_head(method: str, target: bytes, headers: Headers) -> RequestHead:
    """Return the head of a request with this method, target and headers, as it is sent.

    Args:
        method: Such as "GET".
        target: The path and the query.
        headers: All headers, in order.

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
