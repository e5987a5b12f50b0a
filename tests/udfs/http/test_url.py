"""Plain URLs come out as httpx's own parser would have it."""

from __future__ import annotations

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from udfs.http._stack_client import StackClient
from udfs.http._url import merge_plain_url

BASES = ["", "http://example.org", "https://example.org:8443/api/v1", "http://[::1]:80/a%20b/", "http://u:p@h/x"]
ODD_BASES = ["http://example.org/a?b=c", "http://example.org/a#d", "/only/a/path"]

PLAIN = ["/", "/a", "/a/b/", "/a?", "/a?b=c&d=%20", "/10:00", "/a%2Fb", "/a.b", "http://h/", "https://H.org:443/x?y=z"]
OTHER = [
    "a",
    "",
    "//h/x",
    "/a/../b",
    "/.",
    "/a/./b",
    "/a b",
    "/é",
    "/a#b",
    "http://h",
    "http://h?x",
    "http://u@h/x",
    "/%zz",
]


def outcome(kind: type[httpx.AsyncClient], base: str, url: str) -> tuple[object, ...]:
    try:
        built = kind(base_url=base, transport=httpx.AsyncBaseTransport()).build_request("GET", url).url
    except httpx.InvalidURL as error:
        return (str(error),)
    return str(built), built.raw_path, built.host, built.port, built.query, built.fragment, built, hash(built)


@pytest.mark.parametrize("url", PLAIN)
def test_a_plain_url_needs_no_parser(url: str) -> None:
    assert merge_plain_url(httpx.URL("http://example.org/"), url) is not None


@pytest.mark.parametrize("url", [*OTHER, "/" + "a" * 5000, httpx.URL("/a")])
def test_any_other_is_left_to_the_parser(url: str | httpx.URL) -> None:
    assert merge_plain_url(httpx.URL("http://example.org/"), url) is None


@pytest.mark.parametrize("base", BASES + ODD_BASES)
@pytest.mark.parametrize(
    "url", [*PLAIN, *OTHER, "http://[x]/", "http://1.2.3.400/", "http://h:99999999/", "http://h:x/"]
)
def test_the_url_is_what_httpx_makes_of_it(base: str, url: str) -> None:
    assert outcome(StackClient, base, url) == outcome(httpx.AsyncClient, base, url)


@given(st.sampled_from(BASES + ODD_BASES), st.text("aA0.~/:,=+@-%2?#& é{'\\", max_size=12), st.booleans())
def test_whatever_the_url_is_it_is_what_httpx_makes_of_it(base: str, url: str, is_absolute: bool) -> None:
    if is_absolute:
        url = "http://h:8000/" + url
    assert outcome(StackClient, base, url) == outcome(httpx.AsyncClient, base, url)


def test_two_urls_of_one_origin_are_two() -> None:
    base = httpx.URL("http://example.org/")
    assert [str(merge_plain_url(base, path)) for path in ("/a", "/b?c")] == [
        "http://example.org/a",
        "http://example.org/b?c",
    ]
    assert str(base) == "http://example.org/"
