"""ResponseParser, as plain data: what it accepts, what it refuses, and what prevents reuse of the connection."""

from __future__ import annotations

from dataclasses import dataclass

import h11
import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from udfs.http._response_parser import MAX_HEAD_BYTES, ResponseParser

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
EARLY = b"HTTP/1.1 103 Early Hints\r\nLink: </style>\r\nContent-Length: 7\r\n\r\n"

RESPONSES = {
    "a length": OK + b"Content-Length: 7\r\n\r\nweather",
    "no body": OK + b"Content-Length: 0\r\n\r\n",
    "line ends as a body": OK + b"Content-Length: 4\r\n\r\n\r\n\r\n",
    "chunks": CHUNKED + b"3\r\nwea\r\n4;x=y\r\nther\r\n0\r\n\r\n",
    "chunks and trailers": CHUNKED + b"7\r\nweather\r\n0\r\nChecksum: 1\r\nX: 2\r\n\r\n",
    "interim responses": b"HTTP/1.1 100 Continue\r\n\r\n" + EARLY + OK + b"Content-Length: 7\r\n\r\nweather",
    "blanks around the coding": OK + b"Transfer-Encoding: \tChunked\t \r\n\r\n1\r\nx\r\n0\r\n\r\n",
    "padded chunks": CHUNKED + b"3  \r\nwea\r\n4\t;x=y\r\nther\r\n0 \r\n\r\n",
    "a length among the trailers": CHUNKED + b"1\r\nx\r\n0\r\nContent-Length: 9\r\n\r\n",
    "an interim response that closes": b"HTTP/1.1 100 Continue\r\nConnection: close\r\n\r\n"
    + OK
    + b"Content-Length: 1\r\n\r\nx",
    "an interim response in HTTP/1.0": b"HTTP/1.0 103 Early\r\n\r\n" + OK + b"Content-Length: 1\r\n\r\nx",
    "204": b"HTTP/1.1 204 No Content\r\nA: b\r\n\r\n",
    "204 with chunks": b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n",
    "304 with a length": b"HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n",
    "no reason": b"HTTP/1.1 200\r\nContent-Length: 1\r\n\r\nx",
    "blanks around a value": OK + b"A: \t b c \t\r\nEmpty:\r\nContent-Length: 1 \r\n\r\nx",
    "the highest status": b"HTTP/1.1 999 \xe9\r\nContent-Length: 0\r\n\r\n",
}

REFUSED = {
    "not HTTP": b"this is not HTTP\r\n\r\n",
    "an empty line before the head": b"\r\n" + OK + b"Content-Length: 0\r\n\r\n",
    "RTSP": b"RTSP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
    "RTSP after an interim response": EARLY + b"RTSP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
    "an empty line after an interim response": EARLY + b"\r\n" + OK + b"Content-Length: 0\r\n\r\n",
    "a NUL in the reason": b"HTTP/1.1 200 OK\0\r\nContent-Length: 0\r\n\r\n",
    "a control character in the reason": b"HTTP/1.1 200 O\x1bK\r\nContent-Length: 0\r\n\r\n",
    "a control character in the reason of an interim response": b"HTTP/1.1 103 \x7f\r\n\r\n" + OK + b"\r\n",
    "ICE": b"ICE/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
    "HTTP/0.9": b"HTTP/0.9 200 OK\r\nContent-Length: 0\r\n\r\n",
    "HTTP/2.0": b"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.2": b"HTTP/1.2 200 OK\r\nContent-Length: 0\r\n\r\n",
    "HTTP/2.0 after an interim response": EARLY + b"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n",
    "status 99": b"HTTP/1.1 099 OK\r\nContent-Length: 0\r\n\r\n",
    "status 0": b"HTTP/1.1 000 OK\r\nContent-Length: 0\r\n\r\n",
    "four digits": b"HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n",
    "101": b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nraw",
    "101 that names no protocol": b"HTTP/1.1 101 Switching\r\n\r\nraw",
    "one length twice": OK + b"Content-Length: 1\r\nA: b\r\ncontent-length:1 \r\n\r\nx",
    "a list of equal lengths": OK + b"A: b\r\nContent-Length: 1 ,1\r\nContent-Length: 1\r\n\r\nx",
    "two lengths": OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
    "two lengths with other headers between": OK + b"Content-Length: 1\r\nA: b\r\nContent-length: 2\r\n\r\nxx",
    "a list of two lengths": OK + b"Content-Length: 1, 2\r\n\r\nxx",
    "a list with an empty length": OK + b"Content-Length: 1,\r\n\r\nx",
    "two empty lengths": OK + b"Content-Length:\r\nContent-Length:\r\n\r\nx",
    "a length twice, with a sign": OK + b"Content-Length: +1\r\nContent-Length: +1\r\n\r\nx",
    "a length twice and chunks": OK + b"Content-Length: 1, 1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
    "a length twice and a folded header": OK + b"A: b\r\nContent-Length: 1, 1\r\n c\r\n\r\nx",
    "a length twice and a NUL": OK + b"Content-Length: 1, 1\r\nA: \0\r\n\r\nx",
    "a length with a sign": OK + b"Content-Length: +1\r\n\r\nx",
    "a negative length": OK + b"Content-Length: -1\r\n\r\nx",
    "a hexadecimal length": OK + b"Content-Length: 0x1\r\n\r\nx",
    "an empty length": OK + b"Content-Length:\r\n\r\nx",
    "a length beyond 64 bits": OK + b"Content-Length: 99999999999999999999\r\n\r\nx",
    "a length and chunks": OK + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
    "chunks and a length": OK + b"Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n1\r\nx\r\n0\r\n\r\n",
    "another coding": OK + b"Transfer-Encoding: gzip\r\n\r\n1\r\nx\r\n0\r\n\r\n",
    "two codings": OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
    "chunked and then not": OK + b"Transfer-Encoding: chunked, identity\r\n\r\n1\r\nx\r\n0\r\n\r\n",
    "chunked twice": OK + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
    "xchunked": OK + b"Transfer-Encoding: xchunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
    "a blank before the colon": OK + b"Content-Length : 1\r\n\r\nx",
    "a folded header": OK + b"A: b\r\n c\r\nContent-Length: 1\r\n\r\nx",
    "a header without a colon": OK + b"Content-Length\r\n\r\nx",
    "a header without a name": OK + b": 1\r\n\r\nx",
    "a NUL": OK + b"A: b\0c\r\nContent-Length: 1\r\n\r\nx",
    "a lone carriage return": OK + b"A: b\rc\r\nContent-Length: 1\r\n\r\nx",
    "lone line feeds": b"HTTP/1.1 200 OK\nContent-Length: 1\n\nx",
    "a lone line feed at the end of the head": OK + b"Content-Length: 1\r\n\nx",
    "a chunk longer than its size": CHUNKED + b"1\r\nxx\r\n0\r\n\r\n",
    "a chunk with a sign": CHUNKED + b"-1\r\nx\r\n0\r\n\r\n",
    "a chunk with a blank before its size": CHUNKED + b" 1\r\nx\r\n0\r\n\r\n",
    "a chunk with a blank in its size": CHUNKED + b"1 0\r\nxxxxxxxxxxxxxxxx\r\n0\r\n\r\n",
    "a blank after a chunk": CHUNKED + b"1\r\nx \r\n0\r\n\r\n",
    "a padded chunk with a lone line feed": CHUNKED + b"1 \nx\r\n0\r\n\r\n",
    "a chunk with a prefix": CHUNKED + b"0x1\r\nx\r\n0\r\n\r\n",
    "a chunk beyond 64 bits": CHUNKED + b"fffffffffffffffff\r\nx\r\n0\r\n\r\n",
    "a chunk without a size": CHUNKED + b"\r\nx\r\n0\r\n\r\n",
    "chunks with lone line feeds": CHUNKED + b"1\nx\n0\n\n",
    "a line feed in a chunk's extension": CHUNKED + b"1;a\nb\r\nx\r\n0\r\n\r\n",
    "two lengths among the trailers": CHUNKED + b"1\r\nx\r\n0\r\nContent-Length: 9\r\nContent-Length: 8\r\n\r\n",
    "no number among the trailers": CHUNKED + b"1\r\nx\r\n0\r\nContent-Length: x\r\n\r\n",
}


@dataclass(frozen=True)
class Found:
    status: int
    reason: bytes
    version: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes
    allows_reuse: bool


def fed(*parts: bytes, method: str = "GET") -> ResponseParser:
    parser = ResponseParser()
    parser.start(method)
    for part in parts:
        parser.feed(part)
    return parser


def found(parser: ResponseParser) -> Found:
    assert parser.has_head
    assert parser.is_complete
    body = parser.take_body()
    return Found(
        parser.head.status,
        parser.head.reason,
        parser.head.version,
        [(name, value) for name, _, value in parser.head.fields],
        body,
        parser.allows_reuse,
    )


# Responses that are accepted


def test_head_and_body_are_parsed() -> None:
    whole = found(fed(OK + b"Content-Type: text/plain\r\nContent-Length: 7\r\n\r\nweather"))
    headers = [(b"Content-Type", b"text/plain"), (b"Content-Length", b"7")]
    assert whole == Found(200, b"OK", b"HTTP/1.1", headers, b"weather", allows_reuse=True)


@pytest.mark.parametrize("response", RESPONSES.values(), ids=RESPONSES)
def test_a_response_split_at_any_byte_is_the_same(response: bytes) -> None:
    whole = found(fed(response))
    assert whole.allows_reuse
    for place in range(1, len(response)):
        assert found(fed(response[:place], response[place:])) == whole
    assert found(fed(*(bytes([byte]) for byte in response))) == whole


@pytest.mark.parametrize("response", RESPONSES.values(), ids=RESPONSES)
def test_no_part_of_a_response_is_complete(response: bytes) -> None:
    for place in range(1, len(response)):
        parser = fed(response[:place])
        assert not parser.is_complete
        with pytest.raises(httpx.RemoteProtocolError):
            parser.feed_end()


@given(st.lists(st.binary(min_size=1, max_size=50), max_size=8))
@settings(deadline=None)
def test_any_body_in_any_chunks_is_complete(chunks: list[bytes]) -> None:
    sent = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
    assert found(fed(CHUNKED + sent + b"0\r\n\r\n")).body == b"".join(chunks)


def test_a_body_without_a_length_ends_with_the_connection() -> None:
    parser = fed(OK + b"\r\nwea", b"ther")
    assert not parser.is_complete
    parser.feed_end()
    assert found(parser).body == b"weather"
    assert not parser.allows_reuse


def test_a_body_without_a_length_does_not_end_with_an_unclean_end() -> None:
    with pytest.raises(httpx.RemoteProtocolError, match="before the end of the body"):
        fed(OK + b"\r\nweather").feed_end(is_clean=False)


def test_the_end_before_a_response_is_an_error() -> None:
    with pytest.raises(httpx.RemoteProtocolError, match="without sending a response"):
        fed(EARLY).feed_end()


# What h11 reads, and therefore httpx

INTERIM = [
    b"",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.0 103 Early\r\nA: b\r\n\r\n",
    b"HTTP/1.1 103 E\r\nConnection: close\r\n\r\n",
]
STATUSES = [
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.0 200 OK\r\n",
    b"HTTP/1.1 404 \r\n",
    b"HTTP/1.1 204 No Content\r\n",
    b"HTTP/1.1 304 N\r\n",
]
FIELDS = [
    *(
        b"A: b",
        b"A:",
        b"Connection: close",
        b"Connection: keep-alive",
        b"Transfer-Encoding: chunked",
        b"Transfer-Encoding: gzip",
    ),
    *(
        b"Content-Length: " + value
        for value in (b"2", b"2 ", b"2, 2", b"2 ,2", b"2, 3", b"2,", b"02", b"-2", b"", b"2 2", b"0")
    ),
    *(b"content-length:2", b"Content-Length2: 2", b"X: Content-Length: 2, 2"),
]
BODIES = [b"", b"ok", b"2\r\nok\r\n0\r\n\r\n", b"2;a=b\r\nok\r\n0\r\nContent-Length: 2\r\n\r\n", b"okok"]


def read_by_h11(response: bytes, method: str) -> tuple[int, list[tuple[bytes, bytes]], bytes, bool] | None:
    """The status, the headers and the body, and whether the connection can be reused; None: it is refused."""
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method=method, target="/", headers=[("host", "a")]))
    connection.send(h11.EndOfMessage())
    connection.receive_data(response)
    head, body, ends_with_connection = None, b"", False
    try:
        while not isinstance(event := connection.next_event(), h11.EndOfMessage):
            if isinstance(event, h11.Response):
                head = event
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif event is h11.NEED_DATA:
                connection.receive_data(b"")
                ends_with_connection = True
    except h11.RemoteProtocolError:
        return None
    assert head is not None
    is_reusable = connection.their_state is h11.DONE and not connection.trailing_data[0] and not ends_with_connection
    return head.status_code, head.headers.raw_items(), body, is_reusable


def read_by_us(response: bytes, method: str) -> tuple[int, list[tuple[bytes, bytes]], bytes, bool] | None:
    try:
        parser = fed(response, method=method)
        parser.feed_end()
    except httpx.RemoteProtocolError:
        return None
    read = found(parser)
    return read.status, read.headers, read.body, read.allows_reuse


@given(
    st.lists(st.sampled_from(INTERIM), max_size=3).map(b"".join),
    st.sampled_from(STATUSES),
    st.lists(st.sampled_from(FIELDS), max_size=4),
    st.sampled_from(BODIES),
    st.sampled_from(["GET", "HEAD"]),
)
@settings(deadline=None, max_examples=4 * settings().max_examples)
def test_a_response_is_read_as_by_h11(
    interim: bytes, status: bytes, fields: list[bytes], body: bytes, method: str
) -> None:
    """The differences, on purpose: h11 also reads a response with a length and chunks, and one with equal lengths."""
    lengths = [field for field in fields if field.lower().startswith(b"content-length:")]
    has_chunks = any(field.startswith(b"Transfer-Encoding") for field in fields)
    response = interim + status + b"".join(field + b"\r\n" for field in fields) + b"\r\n" + body
    expected = read_by_h11(response, method)
    if (lengths and has_chunks) or len(lengths) > 1 or any(b"," in length for length in lengths):
        expected = None
    assert read_by_us(response, method) == expected


# HEAD


@pytest.mark.parametrize("length", [b"Content-Length: 7\r\n", b"Transfer-Encoding: chunked\r\n", b""])
def test_the_response_to_head_has_no_body_whatever_its_headers(length: bytes) -> None:
    parser = fed(OK + length + b"\r\n", method="HEAD")
    assert found(parser).body == b""
    assert parser.allows_reuse
    parser.start("GET")
    parser.feed(RESPONSES["a length"])
    assert found(parser).body == b"weather"


@pytest.mark.parametrize("value", [b"close", b"foo, Close"])
def test_connection_close_in_the_response_to_head_prevents_reuse(value: bytes) -> None:
    assert not fed(OK + b"Connection: %b\r\n\r\n" % value, method="HEAD").allows_reuse
    assert not fed(b"HTTP/1.0 200 OK\r\n\r\n", method="HEAD").allows_reuse


def test_a_head_known_from_head_does_not_allow_reuse_after_a_body_without_a_length() -> None:
    head = OK + b"A: known\r\n\r\n"
    assert fed(head, method="HEAD").allows_reuse
    parser = fed(head + b"weather")
    assert not parser.allows_reuse
    parser.feed_end()
    assert not parser.allows_reuse


@pytest.mark.parametrize("surplus", [b"weather", b"\r\n", b"5;x=", b"7\r\nweather\r\n0\r\n\r\n"])
@pytest.mark.parametrize("length", [b"Content-Length: 7\r\n", b"Transfer-Encoding: chunked\r\n", b""])
def test_a_body_after_head_is_surplus(surplus: bytes, length: bytes) -> None:
    parser = fed(OK + length + b"\r\n" + surplus, method="HEAD")
    assert found(parser).body == b""
    assert not parser.allows_reuse


# Surplus data


@pytest.mark.parametrize("response", RESPONSES.values(), ids=RESPONSES)
def test_any_byte_after_a_response_prevents_reuse_and_changes_nothing(response: bytes) -> None:
    whole = found(fed(response))
    for byte in range(256):
        for surplus in (bytes([byte]), bytes([byte]) * 2, b"\r\n" + bytes([byte]), bytes([byte]) + b"\r\n"):
            more = found(fed(response + surplus))
            assert not more.allows_reuse
            assert (more.status, more.headers, more.body) == (whole.status, whole.headers, whole.body)


@pytest.mark.parametrize(
    "response",
    [
        OK + b"Connection: close\r\nContent-Length: 0\r\n\r\n",
        OK + b"Connection: foo, Close\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
)
def test_connection_close_and_http_1_0_prevent_reuse(response: bytes) -> None:
    assert not found(fed(response)).allows_reuse


# Responses that are refused


@pytest.mark.parametrize("response", REFUSED.values(), ids=REFUSED)
def test_an_unsafe_response_is_refused_however_it_arrives(response: bytes) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        fed(response)
    with pytest.raises(httpx.RemoteProtocolError):
        fed(*(bytes([byte]) for byte in response))


@given(st.binary(min_size=1, max_size=200))
@settings(deadline=None)
def test_noise_is_refused_or_incomplete(noise: bytes) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        fed(noise).feed_end()


@pytest.mark.parametrize(
    ("start", "endless", "message"),
    [
        (OK, b"A: b\r\n", "the head of the response is larger than 102,400 bytes"),
        (OK + b"A: ", b"b", "the head of the response is larger than 102,400 bytes"),
        (b"HTTP/1.1 200 ", b"O", "the head of the response is larger than 102,400 bytes"),
        (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n", "the head of the response is larger than 102,400 bytes"),
        (CHUNKED + b"1\r\nx\r\n0\r\n", b"A: b\r\n", "102,400 bytes of chunk sizes or trailers"),
        (CHUNKED + b"1;", b"a", "102,400 bytes of chunk sizes or trailers"),
    ],
    ids=["headers", "a header", "a reason", "interim responses", "trailers", "a chunk's extension"],
)
def test_endless_data_without_a_body_is_refused_at_the_limit(start: bytes, endless: bytes, message: str) -> None:
    parts = [endless * 100] * (MAX_HEAD_BYTES // len(endless) // 100 + 1)
    with pytest.raises(httpx.RemoteProtocolError, match=message):
        fed(start + parts[0], *parts)


@pytest.mark.parametrize("is_interim", [False, True])
def test_a_head_may_have_exactly_max_head_bytes(is_interim: bool) -> None:
    start, end = (EARLY if is_interim else b"") + OK + b"A: ", b"\r\nContent-Length: 1\r\n\r\n"
    filling = b"a" * (MAX_HEAD_BYTES - len(start + end))
    assert found(fed(start + filling + end + b"x")).body == b"x"
    with pytest.raises(httpx.RemoteProtocolError, match="larger than 102,400 bytes"):
        fed(start + filling + b"a" + end + b"x")


@pytest.mark.parametrize(
    "response",
    [
        OK + b"Transfer-Encoding: " + b"a" * 50_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 \0" + b"a" * 50_000 + b"\r\n\r\n",
        b"a" * 50_000,
    ],
    ids=["a transfer coding", "a reason", "no response"],
)
def test_an_error_shows_only_the_start_of_the_data(response: bytes) -> None:
    with pytest.raises(httpx.RemoteProtocolError) as caught:
        fed(response)
    assert len(str(caught.value)) < 200


def test_the_error_of_a_protocol_switch_says_what_the_server_did() -> None:
    with pytest.raises(httpx.RemoteProtocolError, match=r"the server switches to another protocol \(101\)"):
        fed(REFUSED["101"])


def test_connection_close_in_a_trailer_is_ignored() -> None:
    parser = fed(CHUNKED + b"1\r\nx\r\n0\r\nConnection: close\r\n\r\n")
    assert parser.allows_reuse
    parser.start("GET")
    parser.feed(RESPONSES["a length"])
    assert found(parser).body == b"weather"


def test_a_large_body_is_not_a_large_head() -> None:
    parts = [b"x" * 60_000] * 10
    assert len(found(fed(OK + b"Content-Length: 600000\r\n\r\n", *parts)).body) == 600_000
