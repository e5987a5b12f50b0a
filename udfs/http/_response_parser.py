"""ResponseParser: bytes in, a response or an error out. Plain data, without Trio."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

import httptools
import httpx

MAX_HEAD_BYTES: Final = 100 * 1024

_START: Final = b"HTTP/1."
_END: Final = b"\r\n\r\n"
_TLS_ALERT: Final = b"\x15\x03"  # the type and the version of a record (RFC 8446, section 5.1)
_LINE_ENDS: Final = b"\r\n"
_CHUNKED: Final = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
# Plain numbers: a comparison with a member of `httpx.codes`, an enumeration, is much slower
_OK: Final = 200
BODILESS: Final = (204, 304)  # statuses whose responses end with their head
_SHOWN: Final = 60  # bytes of the server's data, in an error
_SWITCHING_PROTOCOLS: Final = 101

# RFC 9112, sections 4 and 5, without folded lines. Neither a reason nor a value has a control character but tabs
_STATUS_LINE: Final = re.compile(rb"(HTTP/1\.[01]) ([1-9][0-9]{2})(?: ([^\x00-\x08\x0a-\x1f\x7f]*))?\r\n")
_FIELDS: Final = re.compile(rb"(?:[-!#$%&'*+.^_`|~0-9a-zA-Z]+:[^\x00-\x08\x0a-\x1f\x7f]*\r\n)*\r\n")
_LONE_LINE_FEED: Final = re.compile(rb"(?<!\r)\n")
_MAX_DIGITS: Final = 18  # of a Content-Length

# A server repeats its head while date and length stay the same
_KNOWN: Final = 256
_MAX_KNOWN: Final = 2_048
_CONNECTION: Final = (b"connection", b"proxy-connection")
_COOKIES: Final = frozenset({b"set-cookie", b"set-cookie2"})

Fields = list[tuple[bytes, bytes, bytes]]


@dataclass(eq=False)
class ResponseHead:
    """The head of a response. It may be shared by responses with the same head: it is not changed.

    Attributes:
        version, status, reason: The status line.
        fields: The headers: the name as it was received, the name in lower case, and the value.
        length: Bytes of the body, by its Content-Length; None if it has none.
        is_chunked: Whether the body is in chunks.
        keeps_alive: Whether the server keeps the connection open after the response, unless the body ends with it.
    """

    version: bytes
    status: int
    reason: bytes
    fields: Fields
    length: int | None
    is_chunked: bool
    keeps_alive: bool

    @cached_property
    def headers(self) -> httpx.Headers:
        """The headers as httpx's, to be copied."""
        return httpx.Headers([(name, value) for name, _, value in self.fields])

    @cached_property
    def sets_cookies(self) -> bool:
        """Whether the server sets a cookie."""
        return any(lowered in _COOKIES for _, lowered, _ in self.fields)

    @property
    def ends_with_connection(self) -> bool:
        """Whether the body has neither a length nor chunks."""
        return self.length is None and not self.is_chunked


class ResponseParser:
    """Parses the responses of one connection, one after the other.

    A head is matched as a whole, against RFC 9112 without what two readers of a response can disagree about:

    * folded headers, lone line feeds and empty lines before a head, interim heads included
    * a control character in the reason phrase or in a value, a status below 100, an HTTP version other than 1.0 and 1.1
    * more than one Content-Length, or one that is not a number; a Content-Length beside a Transfer-Encoding
    * every transfer coding but a single "chunked". A body in another one would end with the connection, so a body that
      is cut off would look complete
    * more than `MAX_HEAD_BYTES` of heads, or of anything else without a byte of body

    llhttp (httptools) parses a body in chunks, in its strict mode, except that it accepts what the RFCs allow: blanks
    after the size of a chunk (RFC 9112, section 7.1.1), and a Content-Length among the trailers, which are ignored (RFC
    9110, section 6.5.1). Every other body is counted.

    Surplus data after a response makes the connection unusable, because it could be taken for the next response.

    Attributes:
        head: The head of the final response, once `has_head`.
        has_begun: Whether anything has arrived.
        has_head: Whether the head of the final response is complete. Interim responses (1xx) are dropped.
        is_complete: Whether the response is complete.
        has_surplus: Whether anything followed it.
    """

    head: ResponseHead

    def __init__(self) -> None:
        self.start("GET")

    def start(self, method: str) -> None:
        """Prepare for the response to a request with this method."""
        self.has_begun = self.has_head = self.is_complete = False
        self._is_head_request = method == "HEAD"
        self.has_surplus = self._has_ended = False
        self._head = b""  # the part of a head that has arrived
        self._bytes_without_body = 0
        self._parts: list[bytes] = []

    @property
    def allows_reuse(self) -> bool:
        """Whether the response is complete, nothing followed it, and the server keeps the connection open."""
        return self.is_complete and self.head.keeps_alive and not (self.has_surplus or self._has_ended)

    def feed(self, data: bytes) -> None:
        """Parse data that has arrived, at least one byte.

        Raises:
            httpx.RemoteProtocolError: The data is not HTTP, or not safe to accept.
            httpx.LocalProtocolError: It is an alert of TLS, which the request did not use.
        """
        self.has_begun = True
        while data and not self.has_head:
            data = self._feed_head(data)
        if data:
            self._feed_body(data)

    def feed_end(self, *, is_clean: bool = True) -> None:
        """Parse the end of the connection.

        Args:
            is_clean: Whether the end is certainly the server's. In TLS, anybody can cause an end without a
                `close_notify`.

        Raises:
            httpx.RemoteProtocolError: The response is not complete.
        """
        if not self.has_head:
            raise httpx.RemoteProtocolError("Server disconnected without sending a response.")
        if not self.is_complete:
            if not (self.head.ends_with_connection and is_clean):
                raise httpx.RemoteProtocolError("the server closed the connection before the end of the body")
            self.is_complete = self._has_ended = True

    def take_body(self) -> bytes:
        """Remove and return what has arrived of the body; `b""` if nothing has."""
        body = b"".join(self._parts)
        self._parts.clear()
        return body

    def _feed_head(self, data: bytes) -> bytes:
        """Parse the part of the data that belongs to the head; return the rest."""
        before = len(self._head)
        held = self._head + data
        if held.startswith(_TLS_ALERT):
            raise httpx.LocalProtocolError("the server speaks TLS: write https:// in the URL, or the port for http://")
        if held[: len(_START)] != _START[: len(held)]:
            raise httpx.RemoteProtocolError(f"the response does not begin with HTTP/1: {held[:_SHOWN]!r}")
        found = held.find(_END, max(0, before - len(_END)))
        end = len(held) if found < 0 else found + len(_END)
        self._bytes_without_body += end - before
        if self._bytes_without_body > MAX_HEAD_BYTES:
            raise httpx.RemoteProtocolError(f"the head of the response is larger than {MAX_HEAD_BYTES:,} bytes")
        if found < 0:
            if _LONE_LINE_FEED.search(held, before):
                raise _malformed("a line of its head ends without a carriage return")
            self._head = held
            return b""
        self._head = b""
        head = _known_head(held[:end]) if end <= _MAX_KNOWN else _parsed_head(held[:end])
        if head.status >= _OK:
            self._accept(head)
        return held[end:]

    def _accept(self, head: ResponseHead) -> None:
        self.head, self.has_head = head, True
        self._missing = math.inf if head.length is None else head.length
        # Some responses end with their head, whatever its Content-Length
        self.is_complete = self._is_head_request or head.status in BODILESS or not self._missing
        if head.is_chunked and not self.is_complete:
            self._bytes_without_body = 0
            self._llhttp = httptools.HttpResponseParser(self)
            self._llhttp.feed_data(_CHUNKED)
            self._llhttp.set_dangerous_leniencies(lenient_spaces_after_chunk_size=True, lenient_chunked_length=True)

    def _feed_body(self, data: bytes) -> None:
        if self.is_complete:
            self.has_surplus = True
        elif self.head.is_chunked:
            self._feed_chunks(data)
        else:
            self._feed_counted(data)

    def _feed_counted(self, data: bytes) -> None:
        if len(data) > self._missing:
            self.has_surplus, data = True, data[: int(self._missing)]
        self._missing -= len(data)
        self._parts.append(data)
        self.is_complete = not self._missing

    def _feed_chunks(self, data: bytes) -> None:
        self._bytes_without_body += len(data)
        if data[-1] in _LINE_ENDS:
            # llhttp ignores line ends between two messages. So such a byte is parsed alone: if the response was
            # complete before it, it is surplus.
            self._parse_chunks(data[:-1])
            self.has_surplus |= self.is_complete
            data = data[-1:]
        self._parse_chunks(data)
        if self._bytes_without_body > MAX_HEAD_BYTES and not self.is_complete:
            raise _malformed(f"{MAX_HEAD_BYTES:,} bytes of chunk sizes or trailers, without a byte of body")

    def _parse_chunks(self, data: bytes) -> None:
        try:
            self._llhttp.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self.has_surplus = self.is_complete
            if not self.is_complete:
                raise _malformed(f"{error}") from error

    # llhttp calls these methods. Whatever it finds after the end of the response is surplus.

    def on_message_begin(self) -> None:
        """A message begins."""
        self.has_surplus |= self.is_complete

    def on_body(self, data: bytes) -> None:
        """A part of the body."""
        if self.is_complete:
            self.has_surplus = True
            return
        self._bytes_without_body = 0
        self._parts.append(data)

    def on_message_complete(self) -> None:
        """The body is complete."""
        self.is_complete = True


def _parsed_head(data: bytes) -> ResponseHead:
    """Return the head of a response, interim or final.

    Raises:
        httpx.RemoteProtocolError: It is malformed, or not safe to accept.
    """
    line = _STATUS_LINE.match(data)
    if line is None:
        raise _malformed(f"its status line begins with {data[:_SHOWN]!r}")
    if _FIELDS.fullmatch(data, line.end()) is None:
        raise _malformed("one of its headers is not valid")
    status = int(line[2])
    if status == _SWITCHING_PROTOCOLS:
        raise httpx.RemoteProtocolError(
            "the server switches to another protocol (101), and this client supports HTTP/1.1 only"
        )
    fields: Fields = []
    for field in data[line.end() : -len(_LINE_ENDS)].split(_LINE_ENDS)[:-1]:
        name, _, value = field.partition(b":")
        fields.append((name, name.lower(), value.strip(b" \t")))
    length, is_chunked = _framing(fields)
    closes = any(lowered in _CONNECTION and b"close" in value.lower() for _, lowered, value in fields)
    # HTTP/1.0 has `Connection: keep-alive`, but its servers often frame bodies wrongly. h11 closes as well
    keeps_alive = line[1] == b"HTTP/1.1" and not closes
    return ResponseHead(line[1], status, line[3] or b"", fields, length, is_chunked=is_chunked, keeps_alive=keeps_alive)


_known_head: Final = lru_cache(_KNOWN)(_parsed_head)


def _framing(fields: Fields) -> tuple[int | None, bool]:
    """Return the Content-Length of a response, or None, and whether its body is in chunks."""
    lengths = [value for _, lowered, value in fields if lowered == b"content-length"]
    codings = [value.lower() for _, lowered, value in fields if lowered == b"transfer-encoding"]
    if codings not in ([], [b"chunked"]) or (codings and lengths):
        got = b", ".join(codings)[:_SHOWN]
        raise _malformed(f"its Transfer-Encoding must be chunked, once, and without a Content-Length, got {got!r}")
    if not lengths:
        return None, bool(codings)
    if len(lengths) > 1 or not (lengths[0].isdigit() and len(lengths[0]) <= _MAX_DIGITS):
        raise _malformed(f"its Content-Length must be one number, got {b', '.join(lengths)[:_SHOWN]!r}")
    return int(lengths[0]), False


def _malformed(problem: str) -> httpx.RemoteProtocolError:
    return httpx.RemoteProtocolError(f"the response is malformed: {problem}")
