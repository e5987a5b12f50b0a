"""The response parser: bytes in, a response out, or an error. Plain data, no Trio."""

from __future__ import annotations

from typing import Final

import httptools
import httpx

__all__ = ["MAX_HEAD_BYTES", "ResponseParser"]

MAX_HEAD_BYTES: Final = 100 * 1024

_START: Final = b"HTTP/1."
_LINE_ENDS: Final = b"\r\n"
_SWITCHING_PROTOCOLS: Final = 101
_OK: Final = 200  # plain numbers, for `httpx.codes` is an enumeration, and each comparison with it a search
_LEAST: Final = 100
_BODILESS: Final = (204, 304)


class ResponseParser:
    """The responses of one connection, one after the other; llhttp (httptools) parses, in its strict mode.

    What llhttp lets pass and an HTTP/1.1 client should not take is refused here: another protocol's name (it knows
    RTSP and ICE), empty lines before the response, a status below 100, an HTTP version other than 1.0 and 1.1, every
    transfer coding but a single "chunked" (a body in another would end where the connection does, so that a cut would
    not show), and a head, or anything else without a byte of body, of more than `MAX_HEAD_BYTES`.

    Anything behind the end of a response makes the connection unfit for another, as then nobody knows what belongs
    to what.

    Attributes:
        status, reason, version, headers: The head of the final response, once `has_head`.
            A header is its name as it came, its name in lower case and its value: so `httpx.Headers` keeps it.
        names: Of the headers, in lower case.
        has_head: Whether the head is complete. Interim responses (1xx) are passed over.
        is_complete: Whether the response is.
    """

    def __init__(self) -> None:
        self._llhttp: httptools.HttpResponseParser | None = None
        self.start("GET")

    def start(self, method: str) -> None:
        """Make ready for the response to a request of this method."""
        if self._llhttp is None:
            self._llhttp = httptools.HttpResponseParser(self)
        self.status = 0
        self.reason = b""
        self.version = b""
        self.headers: list[tuple[bytes, bytes, bytes]] = []
        self.has_head = self.is_complete = False
        self._is_head_request = method == "HEAD"
        self._is_interim = self._ends_with_connection = self._has_surplus = self._keeps_alive = False
        self.names: set[bytes] = set()
        self._codings: list[bytes] = []
        self._parts: list[bytes] = []
        self._problem = ""
        self._received = self._without_body = 0

    @property
    def may_go_on(self) -> bool:
        """Whether the connection is fit for another request: nothing is left over, and the server keeps it open."""
        return self.is_complete and self._keeps_alive and not self._has_surplus

    def feed(self, data: bytes) -> None:
        """Take what has arrived, at least a byte.

        Raises:
            httpx.RemoteProtocolError: It is no HTTP, or none that is safe to take.
        """
        if not data.startswith(_START[self._received : self._received + len(data)]):
            raise httpx.RemoteProtocolError(f"the response does not begin with HTTP/1: {data[:20]!r}")
        self._received += len(data)
        self._without_body += len(data)
        try:
            self._parse(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._has_surplus = self.is_complete
            if not self.is_complete:
                raise httpx.RemoteProtocolError(self._problem or f"the response is malformed: {error}") from error
        if self._problem:
            raise httpx.RemoteProtocolError(self._problem)
        if self._without_body > MAX_HEAD_BYTES and not self.is_complete:
            raise httpx.RemoteProtocolError(f"the head of the response is larger than {MAX_HEAD_BYTES:,} bytes")

    def feed_end(self, *, is_clean: bool = True) -> None:
        """Take the end of the connection.

        Args:
            is_clean: Whether it is certain that the server meant it. In TLS an end without a farewell may be anyone's.

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

    def _parse(self, data: bytes) -> None:
        assert self._llhttp is not None
        llhttp = self._llhttp
        if data[-1] in _LINE_ENDS:
            # llhttp passes over line ends between two messages without a word. So such a byte is fed alone: if the
            # response was complete before it, it is surplus.
            llhttp.feed_data(data[:-1])
            self._has_surplus |= self.is_complete
            data = data[-1:]
        llhttp.feed_data(data)

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
        assert self._llhttp is not None
        if self.has_head:
            return
        self.status = self._llhttp.get_status_code()
        self.version = b"HTTP/" + self._llhttp.get_http_version().encode()
        self._problem = self._problem_of_head()
        if self._problem:
            return
        if self.status < _OK:
            self._is_interim, self.reason = True, b""
            self.headers.clear()
            self.names.clear()
            self._codings.clear()
            return
        self.has_head = True
        # HTTP/1.0 can say `Connection: keep-alive`, and its servers get chunks and lengths wrong. h11 closes, too
        self._keeps_alive = self._llhttp.should_keep_alive() and self.version == b"HTTP/1.1"
        self._ends_with_connection = not (b"content-length" in self.names or self._codings or self.status in _BODILESS)
        if self._is_head_request:
            # llhttp, which has not seen the request, expects a body now. It is not asked again.
            self.is_complete, self._llhttp = True, None

    def on_body(self, data: bytes) -> None:
        """A piece of the body."""
        if self.is_complete:
            self._has_surplus = True
            return
        self._without_body = 0
        self._parts.append(data)

    def on_message_complete(self) -> None:
        """The message is complete: the response, or an interim one."""
        self.is_complete |= not self._is_interim
        self._is_interim = False

    def _problem_of_head(self) -> str:
        if self.status == _SWITCHING_PROTOCOLS:
            return "the server switches to another protocol (101), and this client speaks HTTP/1.1 only"
        if self.status < _LEAST:
            return f"the status is {self.status}"
        if self.version not in (b"HTTP/1.1", b"HTTP/1.0"):
            return f"the response is in {self.version.decode()}"
        if self._codings not in ([], [b"chunked"]):
            return "the transfer coding is not chunked, once: " + b", ".join(self._codings).decode("latin-1")
        return ""
