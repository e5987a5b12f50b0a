"""The head of a request: always one request, with a certain length of its body."""

from __future__ import annotations

from typing import Any

import h11
import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from udfs.http._request import RequestHead, render_head

URL = "http://example.org/path?query"


def request(method: str = "GET", *headers: tuple[bytes, bytes], **options: Any) -> httpx.Request:
    lines = [(b"Host", b"example.org"), *headers]
    return httpx.Request(method, URL, headers=lines, stream=httpx.ByteStream(b""), **options)


def rendered(sent: httpx.Request) -> RequestHead:
    target = sent.extensions.get("target") or sent.url.raw_path
    return render_head(sent.method, target, tuple(sent.headers.raw))


def test_the_extension_target_replaces_the_target() -> None:
    assert rendered(request("OPTIONS", extensions={"target": b"*"}))[0].startswith(b"OPTIONS * HTTP/1.1\r\n")


@pytest.mark.parametrize(
    ("name", "value", "closes"),
    [
        (b"Connection", b"close", True),
        (b"connection", b"x, Close", True),
        (b"Connection", b"keep-alive", False),
        (b"Connection", b"closed", False),
        (b"X-Connection", b"close", False),
        (b"X", b"connection: close", False),
    ],
)
def test_connection_close_among_the_headers_is_noticed(name: bytes, value: bytes, closes: bool) -> None:
    assert rendered(request("GET", (name, value))).closes_connection is closes
    assert rendered(httpx.Request("GET", URL, headers=[(name, value), (b"Host", b"a")])).closes_connection is closes


def test_cached_headers_are_rendered_for_another_line_and_illegal_ones_refused_again() -> None:
    assert rendered(request("GET")).data.startswith(b"GET /path?query HTTP/1.1\r\nHost: ")
    assert rendered(request("PUT", extensions={"target": b"*"})).data.startswith(b"PUT * HTTP/1.1\r\nHost: ")
    for _ in range(2):
        with pytest.raises(httpx.LocalProtocolError, match="illegal value of the header A"):
            rendered(request("GET", (b"A", b"1\n")))
        with pytest.raises(httpx.LocalProtocolError, match="illegal method or target"):
            rendered(request("GET", extensions={"target": b"/a b"}))


@pytest.mark.parametrize(
    ("headers", "length"),
    [([], 0), ([(b"content-length", b"12")], 12), ([(b"Transfer-Encoding", b"Chunked")], None)],
)
def test_the_headers_determine_the_length_of_the_body(headers: list[tuple[bytes, bytes]], length: int | None) -> None:
    assert rendered(request("POST", *headers))[1] == length


@pytest.mark.parametrize(
    "header",
    [
        (b"A", b"b\r\nInjected: 1"),
        (b"A", b"b\r\n\r\nGET /other HTTP/1.1\r\nHost: x"),
        (b"A", b"b\0"),
        (b"A", b"b "),
        (b"A: b\r\nInjected", b"1"),
        (b"A b", b"1"),
        (b"", b"1"),
    ],
)
def test_an_illegal_header_is_refused_without_showing_its_value(header: tuple[bytes, bytes]) -> None:
    with pytest.raises(httpx.LocalProtocolError, match="illegal") as caught:
        rendered(request("GET", header))
    assert "Injected: 1" not in str(caught.value)


@pytest.mark.parametrize("method", ["GE T", "GET\r\nX: y\r\n\r\n", "", "G\0T"])
def test_an_illegal_method_is_refused(method: str) -> None:
    with pytest.raises(httpx.LocalProtocolError, match="illegal method or target"):
        rendered(request(method))


@pytest.mark.parametrize("target", [b"/a b", b"/ HTTP/1.1\r\nX: y\r\n\r\nGET /", b"/\n"])
def test_an_illegal_target_is_refused(target: bytes) -> None:
    with pytest.raises(httpx.LocalProtocolError, match="illegal method or target"):
        rendered(request(extensions={"target": target}))


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
def test_headers_with_an_uncertain_length_are_refused(headers: list[tuple[bytes, bytes]]) -> None:
    with pytest.raises(httpx.LocalProtocolError, match=r"Content-Length|Transfer-Encoding"):
        rendered(request("POST", *headers))


@pytest.mark.parametrize("hosts", [[], [(b"Host", b"a"), (b"host", b"b")]])
def test_a_request_without_exactly_one_host_is_refused(hosts: list[tuple[bytes, bytes]]) -> None:
    with pytest.raises(httpx.LocalProtocolError, match="one Host header"):
        rendered(httpx.Request("GET", URL, headers=hosts, stream=httpx.ByteStream(b"")))


@given(st.lists(st.tuples(st.binary(max_size=6), st.binary(max_size=8)), max_size=3))
@settings(deadline=None)
def test_the_head_is_the_one_that_h11_sends(headers: list[tuple[bytes, bytes]]) -> None:
    """httpx uses h11. Whatever h11 refuses is refused here as well."""
    made = request("GET", *headers)
    try:
        expected = h11.Connection(h11.CLIENT).send(
            h11.Request(method="GET", target="/path?query", headers=made.headers.raw)
        )
    except h11.LocalProtocolError:
        with pytest.raises(httpx.LocalProtocolError):
            rendered(made)
    else:
        assert rendered(made)[0] == expected
