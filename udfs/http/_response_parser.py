"""ResponseParser: bytes in, a response or an error out. Plain data, without Trio."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

import httptools
import httpx

__all__ = ["MAX_HEAD_BYTES", "ResponseHead", "ResponseParser"]

MAX_HEAD_BYTES: Final = 100 * 1024

_START: Final = b"HTTP/1."
_END: Final = b"\r\n\r\n"
_TLS_ALERT: Final = b"\x15\x03"  # the type and the version of a record (RFC 8446, section 5.1)
_LINE_ENDS: Final = b"\r\n"
_CHUNKED: Final = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
# Plain numbers: a comparison with a member of `httpx.codes`, an enumeration, is much slower
_OK: Final = 200
_BODILESS: Final = (204, 304)
_SHOWN: Final = 60  # bytes of the server's data, in an error
_FIRST_STATUS: Final = 100
_SWITCHING_PROTOCOLS: Final = 101
_CONTROL: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")

# A server repeats its head while date and length stay the same
_KNOWN: Final = 256
_MAX_KNOWN: Final = 2_048
_CONNECTION: Final = (b"connection", b"proxy-connection")
_COOKIES: Final = frozenset({b"set-cookie", b"set-cookie2"})

Fields = list[tuple[bytes, bytes, bytes]]


@dataclass(eq=False)
class ResponseHead:
    """The head of a final response. It may be shared by responses with the same head: it is not changed.

    Attributes:
        version, status, reason: The status line.
        fields: The headers: the name as it was received, the name in lower case, and the value.
        names: The names of the headers, in lower case.
        length: Bytes of the body, by its Content-Length; None if it has none.
        is_chunked: Whether the body is in chunks.
        keeps_alive: Whether the server keeps the connection open after the response. It cannot after a body that ends
            with the connection; but the response to a HEAD request has no body, whatever its head.
    """

    version: bytes
    status: int
    reason: bytes
    fields: Fields
    names: frozenset[bytes]
    length: int | None
    is_chunked: bool
    keeps_alive: bool

    def values(self, name: bytes) -> list[bytes]:
        """Return the values of a header, by its name in lower case."""
        return [value for _, lowered, value in self.fields if lowered == name] if name in self.names else []

    def problem(self, transfer_codings: list[bytes]) -> str:
        """Return why the head is refused although llhttp accepts it; "" if it is not.

        Args:
            transfer_codings: The values of its Transfer-Encoding, in lower case, with the whitespace after them.
        """
        if self.status == _SWITCHING_PROTOCOLS:
            return "the server switches to another protocol (101), and this client supports HTTP/1.1 only"
        if self.status < _FIRST_STATUS:
            return f"the status is {self.status}; statuses start at {_FIRST_STATUS}"
        if self.version not in (b"HTTP/1.1", b"HTTP/1.0"):
            return f"the response is in {self.version.decode()}, not in HTTP/1.1 or HTTP/1.0"
        if _CONTROL.search(self.reason):
            return f"the reason phrase has a control character: {self.reason[:_SHOWN]!r}"
        return self._problem_of_framing(transfer_codings)

    @cached_property
    def headers(self) -> httpx.Headers:
        """The headers as httpx's, to be copied."""
        return httpx.Headers([(name, value) for name, _, value in self.fields])

    @cached_property
    def sets_cookies(self) -> bool:
        """Whether the server sets a cookie."""
        return not self.names.isdisjoint(_COOKIES)

    @property
    def ends_with_connection(self) -> bool:
        """Whether the body has neither a length nor chunks."""
        return self.length is None and not self.is_chunked

    def _problem_of_framing(self, transfer_codings: list[bytes]) -> str:
        lengths = self.values(b"content-length")
        if transfer_codings not in ([], [b"chunked"]):
            return f"the transfer coding must be chunked, once, got {b', '.join(transfer_codings)[:_SHOWN]!r}"
        if len(lengths) > 1 or (lengths and self.length is None):
            return f"the Content-Length must be one number, got {b', '.join(lengths)[:_SHOWN]!r}"
        return ""


class ResponseParser:
    """Parses the responses of one connection, one after the other, with llhttp (httptools) in its strict mode.

    llhttp gets each head alone, so that every byte after the head is known. A head that equals an earlier one to the
    byte is not parsed again. A body in chunks goes to a new llhttp, and every other one is counted.

    This class refuses what llhttp accepts and an HTTP/1.1 client should not:

    * the name of another protocol (llhttp accepts RTSP and ICE), and empty lines before a head, interim heads included
    * a control character in the reason phrase, a status below 100, an HTTP version other than 1.0 and 1.1
    * every transfer coding but a single "chunked". A body in another one would end with the connection, so a body that
      is cut off would look complete
    * more than `MAX_HEAD_BYTES` of heads, or of anything else without a byte of body

    It accepts what llhttp refuses and the RFCs allow:

    * blanks after the size of a chunk (RFC 9112, section 7.1.1)
    * a Content-Length among the trailers, which is ignored (RFC 9110, section 6.5.1)
    * an interim response that closes the connection or is in HTTP/1.0: what counts is the final one, as in h11

    Surplus data after a response makes the connection unusable, because it could be taken for the next response.

    Attributes:
        head: The head of the final response, once `has_head`.
        has_begun: Whether anything has arrived.
        has_head: Whether the head of the final response is complete. Interim responses (1xx) are dropped.
        is_complete: Whether the response is complete.
        has_surplus: Whether anything followed it.
    """

    head: ResponseHead

    def __init__(self, *, may_be_known: bool = True) -> None:
        self._may_be_known = may_be_known
        self._llhttp = httptools.HttpResponseParser(self)
        self._needs_new_llhttp = False
        self.start("GET")

    def start(self, method: str) -> None:
        """Prepare for the response to a request with this method."""
        self.has_begun = self.has_head = self.is_complete = False
        self._is_head_request = method == "HEAD"
        self.has_surplus = self._has_ended = False
        self._problem = ""
        self._parts: list[bytes | memoryview] = []

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
        if not self.has_begun:
            self.has_begun = True
            self._bytes_without_body = 0
            self._start_head()
            end = data.find(_END, 0, _MAX_KNOWN) + len(_END) if self._may_be_known else 0
            if end >= len(_END) and (head := _known(data[:end])) is not None:
                self._accept(head)
                if len(data) > end:
                    self._feed_body(memoryview(data)[end:])
                return
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
        body = b"".join(self._parts)  # its only copy
        self._parts.clear()
        return body

    def _accept(self, head: ResponseHead) -> None:
        self.head, self.has_head = head, True
        self._missing = math.inf if head.length is None else head.length
        # Some responses end with their head, whatever its Content-Length
        self.is_complete = self._is_head_request or head.status in _BODILESS or not self._missing
        self._is_in_chunks = False

    def _start_head(self) -> None:
        self._head = bytearray()  # what has arrived of it
        if self._needs_new_llhttp:
            self._llhttp, self._needs_new_llhttp = httptools.HttpResponseParser(self), False
        self._reason = b""
        self._fields: Fields = []
        self._codings: list[bytes] = []

    def _feed_head(self, data: bytes) -> bytes:
        """Parse the part of the data that belongs to the head; return the rest."""
        start = len(self._head)
        if not start and data.startswith(_TLS_ALERT):
            raise httpx.LocalProtocolError("the server speaks TLS: write https:// in the URL, or the port for http://")
        if not data.startswith(_START[start : start + len(data)]):
            raise httpx.RemoteProtocolError(f"the response does not begin with HTTP/1: {data[:_SHOWN]!r}")
        self._head += data
        found = self._head.find(_END, max(0, start + 1 - len(_END)))
        end = len(data) if found < 0 else found + len(_END) - start
        del self._head[start + end :]
        self._bytes_without_body += end
        if self._bytes_without_body > MAX_HEAD_BYTES:
            raise _too_large()
        self._parse(data[:end])
        if found >= 0 and not self.has_head:  # it was an interim response
            self._needs_new_llhttp = True  # this one is at its end if the interim response says so
            self._start_head()
        return data[end:]

    def _feed_body(self, data: bytes | memoryview) -> None:
        if self.is_complete:
            self.has_surplus = True
        elif self.head.is_chunked:
            self._feed_chunks(bytes(data))
        else:
            self._feed_counted(data)

    def _feed_counted(self, data: bytes | memoryview) -> None:
        if len(data) > self._missing:
            self.has_surplus, data = True, data[: int(self._missing)]
        self._missing -= len(data)
        self._parts.append(data)
        self.is_complete = not self._missing

    def _begin_chunks(self) -> None:
        self._llhttp = httptools.HttpResponseParser(self)
        self._llhttp.feed_data(_CHUNKED)
        self._llhttp.set_dangerous_leniencies(
            lenient_spaces_after_chunk_size=True,
            lenient_chunked_length=True,  # of a trailer: the head is the one above
        )
        self._is_in_chunks = self._needs_new_llhttp = True
        self._bytes_without_body = 0

    def _feed_chunks(self, data: bytes) -> None:
        if not self._is_in_chunks:
            self._begin_chunks()
        self._bytes_without_body += len(data)
        if data[-1] in _LINE_ENDS:
            # llhttp ignores line ends between two messages. So such a byte is parsed alone: if the response was
            # complete before it, it is surplus.
            self._parse(data[:-1])
            self.has_surplus |= self.is_complete
            data = data[-1:]
        self._parse(data)
        if self._bytes_without_body > MAX_HEAD_BYTES and not self.is_complete:
            raise _too_large()

    def _parse(self, data: bytes) -> None:
        try:
            self._llhttp.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self.has_surplus = self.is_complete
            if not self.is_complete:
                raise httpx.RemoteProtocolError(self._problem or f"the response is malformed: {error}") from error
        if self._problem:
            raise httpx.RemoteProtocolError(self._problem)

    # llhttp calls these methods. Whatever it finds after the end of the response is surplus.

    def on_message_begin(self) -> None:
        """A message begins."""
        self.has_surplus |= self.is_complete

    def on_status(self, reason: bytes) -> None:
        """A part of the reason phrase."""
        if not self.has_head:
            self._reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer. Trailers are dropped, as in httpx."""
        if self.has_head:
            return
        lowered = name.lower()
        self._fields.append((name, lowered, value.rstrip(b" \t")))
        if lowered == b"transfer-encoding":
            self._codings.append(value.lower())

    def on_headers_complete(self) -> None:
        """The head of a response is complete, interim or final."""
        if self.has_head:
            return
        head = _head(self._llhttp, self._reason, self._fields)
        self._problem = head.problem(self._codings)
        if self._problem or head.status < _OK:
            return
        self._accept(head)
        self._needs_new_llhttp = True  # it expects a body now

    def on_body(self, data: bytes) -> None:
        """A part of the body."""
        if self.is_complete:
            self.has_surplus = True
            return
        self._bytes_without_body = 0
        self._parts.append(data)

    def on_message_complete(self) -> None:
        """A response is complete, interim or final."""
        self.is_complete |= self.has_head


@lru_cache(_KNOWN)
def _known(data: bytes) -> ResponseHead | None:
    """Return the head of a final response; None for an interim one, and for one that is refused."""
    parser = ResponseParser(may_be_known=False)
    try:
        parser.feed(data)
    except httpx.RemoteProtocolError:
        return None
    return parser.head if parser.has_head and not parser.has_surplus else None


def _head(llhttp: httptools.HttpResponseParser, reason: bytes, fields: Fields) -> ResponseHead:
    version = b"HTTP/" + llhttp.get_http_version().encode()
    names = frozenset(name for _, name, _ in fields)
    lengths = [value for _, name, value in fields if name == b"content-length" and value.isdigit()]
    is_chunked = b"transfer-encoding" in names
    # llhttp denies it without a length, and does not know that a response to HEAD has no body
    keeps_alive = llhttp.should_keep_alive() or not (lengths or is_chunked or _closes(fields))
    return ResponseHead(
        version,
        llhttp.get_status_code(),
        reason,
        fields,
        names,
        int(lengths[0]) if lengths else None,
        is_chunked=is_chunked,
        # HTTP/1.0 has `Connection: keep-alive`, but its servers often frame bodies wrongly. h11 closes as well
        keeps_alive=keeps_alive and version == b"HTTP/1.1",
    )


def _closes(fields: Fields) -> bool:
    """Whether the server may close the connection, by the two headers from which llhttp reads it."""
    return any(name in _CONNECTION and b"close" in value.lower() for _, name, value in fields)


def _too_large() -> httpx.RemoteProtocolError:
    return httpx.RemoteProtocolError(f"the head of the response is larger than {MAX_HEAD_BYTES:,} bytes")
