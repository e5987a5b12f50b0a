"""Hop: the bytes of a request are those that httpx's client would send, and a redirect is followed by httpx's rules."""

from __future__ import annotations

import httpx
import pytest

from udfs.http._origin import origin_of
from udfs.http._request_writer import RequestWriter
from udfs.http_columns._hop import Headers, Hop

URLS = [
    "http://127.0.0.1:8000/a?b=c",
    "http://Example.org:80",
    "https://example.org:443/?",
    "https://[::1]:8443/%20a/../b",
    "http://example.org/a/./b",
    "http://müller.example/ä b?ü=&&x#fragment",
    "http://example.org?a=b",
    "http://ann:s%40cret@example.org/",
]
HEADERS: list[Headers] = [(), ((b"A", b"b"), (b"host", b"other")), ((b"Authorization", b"x"), (b"A", b""))]


def lines(data: bytes) -> list[bytes]:
    first, *fields = data.split(b"\r\n")
    return [first, *sorted(field.lower() if field.startswith((b"host", b"Host")) else field for field in fields)]


def sent_by_httpx(method: str, url: str, headers: Headers, body: bytes) -> tuple[object, list[bytes]]:
    request = httpx.Request(method, url, headers=headers, content=body or None)
    if request.url.userinfo:
        auth = httpx.BasicAuth(request.url.username, request.url.password)
        request = next(auth.auth_flow(request))
    return origin_of(request), lines(RequestWriter.of(request)._start)


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("headers", HEADERS, ids=["none", "host", "authorization"])
@pytest.mark.parametrize(("method", "body"), [("GET", b""), ("GET", b"query"), ("POST", b""), ("PUT", b"weather")])
def test_a_request_is_what_httpx_would_send(url: str, headers: Headers, method: str, body: bytes) -> None:
    hop = Hop.first(method, url, headers, body)
    assert (hop.origin, lines(hop.writer._start)) == sent_by_httpx(method, url, headers, body)


@pytest.mark.parametrize(
    ("headers", "problem"),
    [
        (((b"Content-Length", b"3"),), "7 bytes, and its Content-Length is 3"),
        (((b"Transfer-Encoding", b"chunked"),), "without a Content-Length"),
    ],
    ids=["length", "chunks"],
)
def test_a_header_that_contradicts_the_body_is_an_error(headers: Headers, problem: str) -> None:
    with pytest.raises(httpx.LocalProtocolError, match=problem):
        Hop.first("PUT", "http://h/", headers, b"weather")


def test_connect_is_an_error() -> None:
    with pytest.raises(httpx.LocalProtocolError, match="CONNECT opens a tunnel"):
        Hop.first("CONNECT", "http://h/", (), b"")


@pytest.mark.parametrize(
    ("status", "location", "line", "keeps"),
    [
        (302, "/b", b"GET /b HTTP/1.1", {b"Authorization: x"}),
        (307, "b?c", b"POST /b?c HTTP/1.1", {b"Authorization: x", b"Content-Length: 7"}),
        (308, "http://other/", b"POST / HTTP/1.1", {b"Content-Length: 7"}),
        (301, "https://h/", b"GET / HTTP/1.1", {b"Authorization: x"}),
    ],
)
def test_a_redirect_is_followed_by_the_rules_of_httpx(
    status: int, location: str, line: bytes, keeps: set[bytes]
) -> None:
    hop = Hop.first("POST", "http://h/a", ((b"Authorization", b"x"),), b"weather").after(status, location)
    first, *fields = hop.writer._start.partition(b"\r\n\r\n")[0].split(b"\r\n")
    host = b"other" if "other" in location else b"h"
    assert (first, set(fields)) == (line, {b"Host: " + host, *keeps})
    assert hop.origin.host == host


def test_a_second_redirect_follows_the_first() -> None:
    hop = Hop.first("POST", "http://h/a", (), b"weather").after(307, "/b").after(308, "c")
    assert hop.writer._start.startswith(b"POST /c HTTP/1.1\r\n")
    assert hop.writer._start.endswith(b"\r\n\r\nweather")
