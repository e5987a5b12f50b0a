"""PlainRequest: the same bytes as httpx's, without httpx's objects; and when a request is not plain."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from udfs.http import StackTransport
from udfs.http._plain_request import PlainRequest, PlainRequests
from udfs.http._stack_client import StackClient

TIMEOUTS: dict[str, float | None] = {"connect": 1.0, "read": 2.0, "write": 3.0, "pool": 4.0}


def client(**options: Any) -> StackClient:
    return StackClient(transport=StackTransport(), trust_env=False, **options)


def build(http: StackClient, method: str, url: str, headers: Any = None, **body: Any) -> PlainRequest | None:
    content, json = body.get("content"), body.get("json")
    return PlainRequests(http).build(method, url, content, json, headers, timeouts=TIMEOUTS)


@pytest.mark.parametrize(
    ("method", "url", "options"),
    [
        ("GET", "http://h/a", {}),
        ("get", "https://h:8443/a/b?c=d", {"headers": {"A": "b"}}),
        ("HEAD", "http://h:80/?", {"headers": {"Host": "other"}}),
        ("POST", "/a", {}),
        ("POST", "/a?b", {"json": {"é": [1, None, 2.5]}}),
        ("PUT", "/a", {"json": 0, "headers": {"Content-Type": "application/x+json"}}),
        ("PATCH", "/a", {"content": b"12345"}),
        ("DELETE", "/a", {"json": [], "headers": {"Connection": "close"}}),
    ],
)
def test_a_plain_request_is_the_request_that_httpx_builds(method: str, url: str, options: dict[str, Any]) -> None:
    http = client(base_url="http://base/api", headers={"B": "c"})
    plain = build(http, method, url, **options)
    assert plain is not None
    made, theirs = plain.as_httpx(), http.build_request(method, url, **options, timeout=httpx.Timeout(**TIMEOUTS))
    assert (made.method, made.url, made.headers.raw) == (theirs.method, theirs.url, theirs.headers.raw)
    assert (made.content, made.extensions) == (theirs.content, theirs.extensions)
    assert plain.writer.closes_connection is (
        "Connection" in theirs.headers and theirs.headers["Connection"] == "close"
    )


@pytest.mark.parametrize(
    ("method", "url", "options"),
    [
        ("GET", "http://h/a b", {}),
        ("GET", "a", {}),
        ("GET", "//h/a", {}),
        ("GET", "http://h/../a", {}),
        ("CONNECT", "http://h/", {}),
        ("GET", "ftp://h/", {}),
        ("G T", "http://h/", {}),
        ("GET", "http://h/", {"headers": [("A", "b")]}),
        ("GET", "http://h/", {"headers": {"A": "b\n"}}),
        ("GET", "http://h/", {"headers": {"A": ["b"]}}),
        ("POST", "http://h/", {"headers": {"content-length": "1"}, "content": b"ab"}),
        ("POST", "http://h/", {"headers": {"Transfer-Encoding": "chunked"}, "json": 1}),
        ("POST", "http://h/", {"content": b""}),
        ("POST", "http://h/", {"content": "text"}),
        ("POST", "http://h/", {"content": b"1", "json": 1}),
    ],
)
def test_every_other_request_is_left_to_httpx(method: str, url: str, options: dict[str, Any]) -> None:
    assert build(client(base_url="http://base"), method, url, **options) is None


def test_a_relative_url_needs_a_base_url() -> None:
    assert build(client(), "GET", "/a") is None


def test_each_request_has_the_headers_and_the_base_url_of_its_time() -> None:
    http = client(base_url="http://one")
    requests = PlainRequests(http)

    def start() -> tuple[str, str | None]:
        plain = requests.build("GET", "/a", None, None, None, timeouts=TIMEOUTS)
        assert plain is not None
        request = plain.as_httpx()
        return str(request.url), request.headers.get("A")

    assert start() == ("http://one/a", None)
    http.headers["A"] = "1"
    assert start() == ("http://one/a", "1")
    http.base_url = httpx.URL("http://two/b")
    assert start() == ("http://two/b/a", "1")
    http.headers["A"] = "2"
    assert start() == ("http://two/b/a", "2")


def test_more_templates_than_are_stored_are_made_again() -> None:
    http = client()
    requests = PlainRequests(http)
    for _ in range(2):
        for number in range(100):
            plain = requests.build("GET", f"http://h{number}/a", None, None, None, timeouts=TIMEOUTS)
            assert plain is not None
            assert str(plain.as_httpx().url) == f"http://h{number}/a"
