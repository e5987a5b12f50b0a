"""The response parser: bytes in, a response out, or an error. Plain data, no Trio."""

from __future__ import annotations

import re
from typing import Final

import httptools
import httpx

__all__ = ["MAX_HEAD_BYTES", "ResponseParser"]

MAX_HEAD_BYTES: Final = 100 * 1024

_START: Final = b"HTTP/1."
_END: Final = b"\r\n\r\n"
_LINE_ENDS: Final = b"\r\n"
_CONTROL: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_SWITCHING_PROTOCOLS: Final = 101
_OK: Final = 200  # plain numbers, for `httpx.codes` is an enumeration, and each comparison with it a search
_LEAST: Final = 100
_BODILESS: Final = (204, 304)
_SHOWN: Final = 60  # characters of what the server sent, in an error


class ResponseParser:
    """The responses of one connection, one after the other; llhttp (httptools) parses, in its strict mode.

    Each head is cut off before llhttp sees it, so that it is known what lies behind it. What llhttp accepts and an
    HTTP/1.1 client should not is refused here: another protocol's name (it knows RTSP and ICE) and empty lines before a
    head, also behind an interim response, a control character in the reason, a status below 100, an HTTP version other
    than 1.0 and 1.1, every transfer coding but a single "chunked" (a body in another would end where the connection
    does, so that a cut would not show), and heads of a response, or anything else without a byte of body, of more than
    `MAX_HEAD_BYTES`. What llhttp refuses and RFC 9112 allows is accepted: blanks behind the size of a chunk.

    Anything behind the end of a response makes the connection unfit for another, as then nobody knows what belongs
    to what.

    Attributes:
        status, reason, version, headers: The head of the final response, once `has_head`.
            A header is its name as it came, its name in lower case and its value, as `httpx.Headers` stores it.
        names: Of the headers, in lower case.
        has_begun: Whether anything has arrived.
        has_head: Whether the head is complete. Interim responses (1xx) are passed over.
        is_complete: Whether the response is.
    """

    def __init__(self) -> None:
        self._llhttp = httptools.HttpResponseParser(self)
        self._is_spent = False
        self.start("GET")

    def start(self, method: str) -> None:
        """Make ready for the response to a request of this method."""
        self.has_begun = self.has_head = self.is_complete = False
        self._is_head_request = method == "HEAD"
        self._ends_with_connection = self._has_surplus = self._keeps_alive = False
        self._parts: list[bytes] = []
        self._problem = ""
        self._without_body = 0
        self._start_head()

    @property
    def may_go_on(self) -> bool:
        """Whether the connection is fit for another request: nothing is left over, and the server keeps it open."""
        return self.is_complete and self._keeps_alive and not self._has_surplus

    def feed(self, data: bytes) -> None:
        """Take what has arrived, at least a byte.

        Raises:
            httpx.RemoteProtocolError: It is not HTTP, or not safe to accept.
        """
        self.has_begun = True
        while data and not self.has_head:
            data = self._feed_head(data)
        if not data:
            return
        if self.is_complete:
            self._has_surplus = True
            return
        self._feed_body(data)

    def feed_end(self, *, is_clean: bool = True) -> None:
        """Take the end of the connection.

        Args:
            is_clean: Whether it is certain that the server meant it. In TLS an end without a `close_notify` may be
                anyone's.

        Raises:
            httpx.RemoteProtocolError: It is not the end of the response.
        """
        if not self.has_head:
            raise httpx.RemoteProtocolError("Server disconnected without sending a response.")
        if not self.is_complete and not (self._ends_with_connection and is_clean):
            raise httpx.RemoteProtocolError("the server closed the connection before the end of the body")
        self.is_complete = True

    def take_body(self) -> bytes:
        """What has arrived of the body since the last time, maybe nothing."""
        body = b"".join(self._parts)
        self._parts.clear()
        return body

    def _start_head(self) -> None:
        if self._is_spent:
            self._llhttp, self._is_spent = httptools.HttpResponseParser(self), False
        self._seam = b""  # the last bytes of the head, which may be the first ones of its end
        self._head_length = 0  # of the head, so far
        self.status = 0
        self.reason = b""
        self.version = b""
        self.headers: list[tuple[bytes, bytes, bytes]] = []
        self.names: set[bytes] = set()
        self._codings: list[bytes] = []

    def _feed_head(self, data: bytes) -> bytes:
        """Take what belongs to the head; what is behind it."""
        if not data.startswith(_START[self._head_length : self._head_length + len(data)]):
            raise httpx.RemoteProtocolError(f"the response does not begin with HTTP/1: {data[:_SHOWN]!r}")
        seam = self._seam + data
        found = seam.find(_END)
        if found < 0:
            end = len(data)
            self._seam = seam[1 - len(_END) :]
        else:
            end = found + len(_END) - len(self._seam)
        self._head_length += end
        self._without_body += end
        if self._without_body > MAX_HEAD_BYTES:
            raise _too_large()
        self._parse(data[:end])
        if found >= 0 and not self.has_head:  # it was an interim response
            self._start_head()
        return data[end:]

    def _feed_body(self, data: bytes) -> None:
        self._without_body += len(data)
        if data[-1] in _LINE_ENDS:
            # llhttp passes over line ends between two messages without a word. So such a byte is fed alone: if the
            # response was complete before it, it is surplus.
            self._parse(data[:-1])
            self._has_surplus |= self.is_complete
            data = data[-1:]
        self._parse(data)
        if self._without_body > MAX_HEAD_BYTES and not self.is_complete:
            raise _too_large()

    def _parse(self, data: bytes) -> None:
        try:
            self._llhttp.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._has_surplus = self.is_complete
            if not self.is_complete:
                raise httpx.RemoteProtocolError(self._problem or f"the response is malformed: {error}") from error
        if self._problem:
            raise httpx.RemoteProtocolError(self._problem)

    # What llhttp calls. After the end of the response all of it is surplus.

    def on_message_begin(self) -> None:
        """A message begins."""
        self._has_surplus |= self.is_complete

    def on_status(self, reason: bytes) -> None:
        """A piece of the reason phrase."""
        if not self.has_head:
            self.reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer, which httpx has no place for."""
        if self.has_head:
            return
        lowered = name.lower()
        self.headers.append((name, lowered, value.rstrip(b" \t")))
        self.names.add(lowered)
        if lowered == b"transfer-encoding":
            self._codings.append(value.lower())

    def on_headers_complete(self) -> None:
        """The head is complete; of an interim response, nothing is kept."""
        if self.has_head:
            return
        llhttp = self._llhttp
        self.status = llhttp.get_status_code()
        self.version = b"HTTP/" + llhttp.get_http_version().encode()
        self._problem = self._problem_of_head()
        if self._problem or self.status < _OK:
            return
        self.has_head = True
        # HTTP/1.0 can say `Connection: keep-alive`, and its servers get chunks and lengths wrong. h11 closes, too
        self._keeps_alive = llhttp.should_keep_alive() and self.version == b"HTTP/1.1"
        # Here the end of the head is the end of the response, whatever lengths it gives
        self.is_complete = self._is_head_request or self.status in _BODILESS
        # llhttp may expect a body now, and a trailer may change its mind on the connection
        self._is_spent = self.is_complete or bool(self._codings)
        self._ends_with_connection = not (b"content-length" in self.names or self._codings)
        if self._codings:
            llhttp.set_dangerous_leniencies(lenient_spaces_after_chunk_size=True)

    def on_body(self, data: bytes) -> None:
        """A piece of the body."""
        if self.is_complete:
            self._has_surplus = True
            return
        self._without_body = 0
        self._parts.append(data)

    def on_message_complete(self) -> None:
        """The message is complete: the response, or an interim one."""
        self.is_complete |= self.has_head

    def _problem_of_head(self) -> str:
        if self.status == _SWITCHING_PROTOCOLS:
            return "the server switches to another protocol (101), and this client speaks HTTP/1.1 only"
        if self.status < _LEAST:
            return f"the status is {self.status}"
        if self.version not in (b"HTTP/1.1", b"HTTP/1.0"):
            return f"the response is in {self.version.decode()}"
        if _CONTROL.search(self.reason):
            return f"the reason phrase has a control character: {self.reason[:_SHOWN]!r}"
        if self._codings not in ([], [b"chunked"]):
            return f"the transfer coding must be chunked, once, got {b', '.join(self._codings)[:_SHOWN]!r}"
        return ""


def _too_large() -> httpx.RemoteProtocolError:
    return httpx.RemoteProtocolError(f"the head of the response is larger than {MAX_HEAD_BYTES:,} bytes")
