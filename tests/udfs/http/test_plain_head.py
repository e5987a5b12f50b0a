"""Plain heads: llhttp has the same view of each of them."""

from __future__ import annotations

from dataclasses import astuple

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from udfs.http._plain_head import plain_head
from udfs.http._response_parser import ResponseParser

OK = b"HTTP/1.1 200 OK\r\n"
LENGTH = b"Content-Length: 7\r\n"

NAMES = [
    b"A",
    b"date",
    b"Content-Length",
    b"content-length",
    b"Transfer-Encoding",
    b"Connection",
    b"Proxy-Connection",
    b"Upgrade",
    b"Keep-Alive",
    b"Trailer",
    b"Content-Length ",
    b"Te st",
    b"",
    b"!#$%&'*+-.^_`|~",
]
VALUES = [
    b"7",
    b"0",
    b"007",
    b"+7",
    b"7 ",
    b" \t7\t",
    b"7,7",
    b"",
    b"close",
    b"keep-alive",
    b"chunked",
    b"h2c",
    b"a b",
    b"a:b",
    b'"',
]
BYTES = [b"\0", b"\t", b"\n", b"\r", b"\r\n", b" ", b"\x7f", b"\x80", b"\xff", b":", b"\x0b"]

value = st.one_of(st.sampled_from(VALUES), st.binary(max_size=4), st.text("abz019 \t,;=", max_size=6).map(str.encode))
line = st.tuples(
    st.one_of(st.sampled_from(NAMES), st.binary(max_size=3)),
    st.sampled_from([b":", b": ", b":\t ", b"", b" : "]),
    value,
).map(b"".join)
start = st.tuples(
    st.sampled_from([b"HTTP/1.1", b"HTTP/1.0", b"HTTP/1.1 ", b"HTTP/1.2", b"http/1.1", b"ICE/1.1"]),
    st.sampled_from(
        [b" 200", b" 204", b" 304", b" 404", b" 599", b" 100", b" 101", b" 099", b" 600", b" 2000", b" 20"]
    ),
    st.sampled_from([b" OK", b"", b" ", b"  OK", b" OK ", b" Not Found", b" O\tK", b" \xe9", b" O\x01K", b"OK"]),
).map(b"".join)


def parsed(data: bytes) -> ResponseParser | None:
    """What llhttp makes of a head; None if it refuses it."""
    parser = ResponseParser()
    try:
        parser.feed_unknown(data)
    except httpx.RemoteProtocolError:
        return None
    return parser


def check(data: bytes) -> None:
    plain = plain_head(data)
    if plain is None:
        return
    parser = parsed(data)
    assert parser is not None
    assert parser.has_head
    assert not parser.has_surplus
    assert astuple(plain) == astuple(parser.head)


@given(st.one_of(start, st.just(OK[:-2])), st.lists(line, max_size=4), st.booleans())
def test_a_plain_head_is_what_llhttp_finds(start: bytes, lines: list[bytes], has_length: bool) -> None:
    lines = [*lines, LENGTH[:-2]] if has_length else lines
    check(b"\r\n".join([start, *lines, b"", b""]))


@pytest.mark.parametrize("byte", BYTES)
def test_a_byte_anywhere_does_not_make_a_difference_between_the_parsers(byte: bytes) -> None:
    head = OK + b"A: b c\r\n" + LENGTH + b"\r\n"
    for place in range(len(head) + 1):
        check(head[:place] + byte + head[place:])
        check(head[:place] + byte + head[place + 1 :])


@pytest.mark.parametrize(
    "head",
    [
        OK + LENGTH + b"\r\n",
        b"HTTP/1.1 404 Not Found\r\ndate: Tue, 01 Jan 2013 00:00:00 GMT\r\n" + LENGTH + b"X-Empty:\r\n\r\n",
        b"HTTP/1.1 299 \r\nContent-Length:\t0 \r\n\r\n",
    ],
)
def test_common_heads_are_plain(head: bytes) -> None:
    assert plain_head(head) is not None
    check(head)


@pytest.mark.parametrize(
    "lines",
    [
        b"",
        b"Content-Length: 1\r\nContent-Length: 1\r\n",
        b"Content-Length: 1, 1\r\n",
        b"Content-Length: \r\n",
        b"Content-Length: 1000000000000000\r\n",
        LENGTH + b"Transfer-Encoding: chunked\r\n",
        LENGTH + b"Connection: close\r\n",
        LENGTH + b"Upgrade: x\r\n",
        LENGTH + b"A : b\r\n",
        LENGTH + b" folded\r\n",
        LENGTH + b"A: \xe9\r\n",
        LENGTH + b"A: b\n",
    ],
)
def test_every_other_head_is_left_to_llhttp(lines: bytes) -> None:
    assert plain_head(OK + lines + b"\r\n") is None
