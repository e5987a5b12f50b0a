"""The head of a request: what goes out is one request, and says how long its body is."""

from __future__ import annotations

from typing import Any

import h11
import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from udfs.http._request_head import render_head

URL = "http://example.org/path?query"


def request(method: str = "GET", *headers: tuple[bytes, bytes], **options: Any) -> httpx.Request:
    lines = [(b"Host", b"example.org"), *headers]
    return httpx.Request(method, URL, headers=lines, stream=httpx.ByteStream(b""), **options)


def test_the_head_is_what_http_says() -> None:
    head, length, _ = render_head(request("GET", (b"Accept", b"*/*"), (b"Empty", b""), (b"Name", b"\xe9 a\tb")))
    assert head == b"GET /path?query HTTP/1.1\r\nHost: example.org\r\nAccept: */*\r\nEmpty: \r\nName: \xe9 a\tb\r\n\r\n"
    assert length == 0


def test_the_target_can_be_given() -> None:
    assert render_head(request("OPTIONS", extensions={"target": b"*"}))[0].startswith(b"OPTIONS * HTTP/1.1\r\n")


@pytest.mark.parametrize(
    ("name", "value", "is_last"),
    [
        (b"Connection", b"close", True),
        (b"connection", b"x, Close", True),
        (b"Connection", b"keep-alive", False),
        (b"Connection", b"closed", False),
        (b"X-Connection", b"close", False),
        (b"X", b"connection: close", False),
    ],
)
def test_the_headers_say_whether_it_is_the_last(name: bytes, value: bytes, is_last: bool) -> None:
    assert render_head(request("GET", (name, value))).closes_connection is is_last
    assert render_head(httpx.Request("GET", URL, headers=[(name, value), (b"Host", b"a")])).closes_connection is is_last


def test_the_same_headers_serve_another_line_and_a_bad_one_is_refused_again() -> None:
    assert render_head(request("GET")).data.startswith(b"GET /path?query HTTP/1.1\r\nHost: ")
    assert render_head(request("PUT", extensions={"target": b"*"})).data.startswith(b"PUT * HTTP/1.1\r\nHost: ")
    for _ in range(2):
        with pytest.raises(httpx.LocalProtocolError, match="illegal value of the header A"):
            render_head(request("GET", (b"A", b"1\n")))
        with pytest.raises(httpx.LocalProtocolError, match="illegal method or target"):
            render_head(request("GET", extensions={"target": b"/a b"}))


@pytest.mark.parametrize(
    ("headers", "length"),
    [([], 0), ([(b"content-length", b"12")], 12), ([(b"Transfer-Encoding", b"Chunked")], None)],
)
def test_the_headers_say_how_long_the_body_is(headers: list[tuple[bytes, bytes]], length: int | None) -> None:
    assert render_head(request("POST", *headers))[1] == length


@pytest.mark.parametrize(
    "header",
    [
        (b"A", b"b\r\nInjected: 1"),
        (b"A", b"b\r\n\r\nGET /other HTTP/1.1\r\nHost: x"),
        (b"A", b"b\nInjected: 1"),
        (b"A", b"b\rInjected: 1"),
        (b"A", b"b\0"),
        (b"A", b" b"),
        (b"A", b"b "),
        (b"A", b"\x0b"),
        (b"A: b\r\nInjected", b"1"),
        (b"A b", b"1"),
        (b"A:", b"1"),
        (b"", b"1"),
        (b"\xe9", b"1"),
    ],
)
def test_a_header_that_is_none_is_refused_and_its_value_kept_secret(header: tuple[bytes, bytes]) -> None:
    with pytest.raises(httpx.LocalProtocolError, match="illegal") as caught:
        render_head(request("GET", header))
    assert "Injected: 1" not in str(caught.value)


@pytest.mark.parametrize("method", ["GE T", "GET\r\nX: y\r\n\r\n", "", "G\0T"])
def test_a_method_that_is_none_is_refused(method: str) -> None:
    with pytest.raises(httpx.LocalProtocolError, match="illegal method or target"):
        render_head(request(method))


@pytest.mark.parametrize("target", [b"/a b", b"/ HTTP/1.1\r\nX: y\r\n\r\nGET /", b"/\n"])
def test_a_target_that_is_none_is_refused(target: bytes) -> None:
    with pytest.raises(httpx.LocalProtocolError, match="illegal method or target"):
        render_head(request(extensions={"target": target}))


@pytest.mark.parametrize(
    "headers",
    [
        [(b"Content-Length", b"1"), (b"Transfer-Encoding", b"chunked")],
        [(b"Content-Length", b"1"), (b"Content-Length", b"1")],
        [(b"Content-Length", b"1, 1")],
        [(b"Content-Length", b"-1")],
        [(b"Content-Length", b"")],
        [(b"Transfer-Encoding", b"gzip")],
        [(b"Transfer-Encoding", b"gzip, chunked")],
        [(b"Transfer-Encoding", b"chunked"), (b"Transfer-Encoding", b"chunked")],
    ],
)
def test_headers_that_leave_the_length_open_are_refused(headers: list[tuple[bytes, bytes]]) -> None:
    with pytest.raises(httpx.LocalProtocolError, match=r"Content-Length|Transfer-Encoding"):
        render_head(request("POST", *headers))


@pytest.mark.parametrize("hosts", [[], [(b"Host", b"a"), (b"host", b"b")]])
def test_there_is_one_host(hosts: list[tuple[bytes, bytes]]) -> None:
    with pytest.raises(httpx.LocalProtocolError, match="one Host header"):
        render_head(httpx.Request("GET", URL, headers=hosts, stream=httpx.ByteStream(b"")))


@given(st.lists(st.tuples(st.binary(max_size=6), st.binary(max_size=8)), max_size=3))
@settings(deadline=None)
def test_what_is_sent_is_what_h11_would_send(headers: list[tuple[bytes, bytes]]) -> None:
    """h11 is what httpx sends with. It may refuse more, for what it takes for a length; it never refuses less."""
    asked = request("GET", *headers)
    try:
        expected = h11.Connection(h11.CLIENT).send(
            h11.Request(method="GET", target="/path?query", headers=asked.headers.raw)
        )
    except h11.LocalProtocolError:
        with pytest.raises(httpx.LocalProtocolError):
            render_head(asked)
    else:
        assert render_head(asked)[0] == expected
