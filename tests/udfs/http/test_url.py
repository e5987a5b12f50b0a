"""Plain URLs: the result is that of httpx's parser."""

from __future__ import annotations

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from udfs.http._stack_client import StackClient
from udfs.http._url import merge_plain_url

BASE = httpx.URL("http://example.org/")
BASES = [
    "",
    "http://example.org",
    "https://example.org:8443/api/v1",
    "http://[::1]:80/a%20b/",
    "http://u:p@h/x",
    "http://example.org/a?b=c",
    "http://example.org/a#d",
    "/only/a/path",
]

PLAIN = ["/", "/a/b/", "/a?", "/a?b=c&d=%20", "/10:00", "/a%2Fb", "/a.b", "https://H.org:443/x?y=z"]
OTHER = ["a", "", "//h/x", "/a/../b", "/.", "/a b", "/é", "/a#b", "http://h", "http://u@h/x", "/%zz", "/" + "a" * 5000]


def outcome(kind: type[httpx.AsyncClient], base: str, url: str) -> tuple[object, ...]:
    try:
        built = kind(base_url=base, transport=httpx.AsyncBaseTransport()).build_request("GET", url).url
    except httpx.InvalidURL as error:
        return (str(error),)
    return str(built), built.raw_path, built.host, built.port, built.query, built.fragment, built, hash(built)


@pytest.mark.parametrize("url", PLAIN)
def test_a_plain_url_is_merged_without_the_parser(url: str) -> None:
    assert merge_plain_url(BASE, url) is not None


@pytest.mark.parametrize("url", [*OTHER, httpx.URL("/a")], ids=lambda url: str(url)[:20])
def test_any_other_url_is_left_to_the_parser(url: str | httpx.URL) -> None:
    assert merge_plain_url(BASE, url) is None


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("", "https://H.org:443/x?y=z"),
        ("http://example.org", "/a?"),
        ("https://example.org:8443/api/v1", "/a?b=c&d=%20"),
        ("http://[::1]:80/a%20b/", "/a%2Fb"),
        ("http://u:p@h/x", "//h/x"),
        ("http://example.org/a?b=c", "/a/../b"),
        ("/only/a/path", "/a"),
        ("", "http://[x]/"),
        ("", "http://1.2.3.400/"),
        ("", "http://h:99999999/"),
    ],
)
def test_the_url_is_the_one_that_httpx_builds(base: str, url: str) -> None:
    assert outcome(StackClient, base, url) == outcome(httpx.AsyncClient, base, url)


@given(st.sampled_from(BASES), st.text("aA0.~/:,=+@-%2?#& é{'\\", max_size=12), st.booleans())
def test_any_url_is_the_one_that_httpx_builds(base: str, url: str, is_absolute: bool) -> None:
    if is_absolute:
        url = "http://h:8000/" + url
    assert outcome(StackClient, base, url) == outcome(httpx.AsyncClient, base, url)


def test_two_urls_of_one_origin_do_not_share_their_paths() -> None:
    urls = [str(merge_plain_url(BASE, path)) for path in ("/a", "/b?c")]
    assert urls == ["http://example.org/a", "http://example.org/b?c"]
    assert str(BASE) == "http://example.org/"
