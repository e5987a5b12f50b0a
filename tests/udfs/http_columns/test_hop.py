"""Hop: the bytes of a request are those that httpx's client would send, and a redirect is followed by httpx's rules."""

from __future__ import annotations

import httpx
import pytest

from udfs.http import client
from udfs.http._request import RequestWriter
from udfs.http._url import origin_of_url
from udfs.http_columns._requests import Headers, Hop, Target

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


def hop_to(method: str, url: str, headers: Headers, body: bytes) -> Hop:
    return Hop.to(Target.of(url), method, headers, body)


def bytes_of(hop: Hop) -> bytes:
    """The request as the column's client writes it."""
    request = client().build_request(hop.method, hop.target.url, headers=hop.headers, content=hop.body or None)
    return RequestWriter.of(request)._start


def lines(data: bytes) -> list[bytes]:
    first, *fields = data.split(b"\r\n")
    return [first, *sorted(field.lower() if field.startswith((b"host", b"Host")) else field for field in fields)]


def sent_by_httpx(method: str, url: str, headers: Headers, body: bytes) -> tuple[object, list[bytes]]:
    with_defaults = httpx.Headers(client().headers)
    with_defaults.update(list(headers))
    request = httpx.Request(method, url, headers=with_defaults, content=body or None)
    if request.url.userinfo:
        auth = httpx.BasicAuth(request.url.username, request.url.password)
        request = next(auth.auth_flow(request))
    return origin_of_url(request.url), lines(RequestWriter.of(request)._start)


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("headers", HEADERS, ids=["none", "host", "authorization"])
@pytest.mark.parametrize(("method", "body"), [("GET", b""), ("GET", b"query"), ("POST", b""), ("PUT", b"weather")])
def test_a_request_is_what_httpx_would_send(url: str, headers: Headers, method: str, body: bytes) -> None:
    hop = hop_to(method, url, headers, body)
    assert (hop.target.origin, lines(bytes_of(hop))) == sent_by_httpx(method, url, headers, body)


@pytest.mark.parametrize(
    ("status", "location", "line", "keeps"),
    [
        (302, "/b", b"GET /b HTTP/1.1", {b"Authorization: x"}),
        (307, "b?c", b"POST /b?c HTTP/1.1", {b"Authorization: x", b"Content-Length: 7"}),
        (301, "https://h/", b"GET / HTTP/1.1", {b"Authorization: x"}),
    ],
)
def test_a_redirect_is_followed_by_the_rules_of_httpx(
    status: int, location: str, line: bytes, keeps: set[bytes]
) -> None:
    hop = hop_to("POST", "http://h/a", ((b"Authorization", b"x"),), b"weather").after(status, location)
    first, *fields = bytes_of(hop).partition(b"\r\n\r\n")[0].split(b"\r\n")
    of_client = {b"%b: %b" % each for each in client().headers.raw}
    assert (first, set(fields) - of_client) == (line, {b"Host: h", *keeps})


SECRETS: Headers = (
    (b"Authorization", b"secret"),
    (b"Cookie", b"secret"),
    (b"X-Api-Key", b"secret"),
    (b"User-Agent", b"secret"),
    (b"Host", b"secret"),
    (b"Content-Type", b"text/plain"),
)


@pytest.mark.parametrize(
    "location",
    ["http://other/", "http://h:81/", "https://h:8443/", "//other/b", "http://h.other/", "http://u:p@other/"],
)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_another_origin_gets_none_of_the_headers_but_those_of_the_body(status: int, location: str) -> None:
    hop = hop_to("POST", "http://user:secret@h/a", SECRETS, b"weather").after(status, location)
    sent = bytes_of(hop)
    assert b"secret" not in sent
    assert b"Authorization" not in sent
    assert b"Accept: */*\r\n" in sent
    has_body = status in {307, 308}
    assert (b"Content-Type: text/plain" in sent) is has_body
    assert sent.endswith(b"weather") is has_body
    assert b"secret" not in bytes_of(hop.after(307, "http://h/a"))


@pytest.mark.parametrize(
    ("url", "location", "is_shared"),
    [
        ("http://h/a", "https://h/b", True),
        ("http://h:80/a", "https://h:443/b", True),
        ("http://h:8080/a", "https://h/b", False),
        ("https://h:80/a", "https://h/b", False),
        ("https://h/a", "http://h/b", False),
        ("http://h/a", "https://other/b", False),
    ],
)
def test_only_an_upgrade_of_the_same_host_to_tls_on_default_ports_gets_the_headers_as_in_httpx(
    url: str, location: str, is_shared: bool
) -> None:
    hop = hop_to("GET", url, ((b"Authorization", b"secret"),), b"").after(302, location)
    assert (b"secret" in bytes_of(hop)) is is_shared
    request = httpx.Request("GET", url, headers={"Authorization": "secret"})
    of_httpx = httpx.AsyncClient()._redirect_headers(request, httpx.URL(location), "GET")
    assert ("Authorization" in of_httpx) is is_shared


def test_a_second_redirect_follows_the_first() -> None:
    hop = hop_to("POST", "http://h/a", (), b"weather").after(307, "/b").after(308, "c")
    assert bytes_of(hop).startswith(b"POST /c HTTP/1.1\r\n")
    assert bytes_of(hop).endswith(b"\r\n\r\nweather")
