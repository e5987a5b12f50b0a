"""Plain URLs: whatever a user can see of one is what httpx's parser gives."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from copy import copy, deepcopy
from typing import Any

import httpx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from udfs.http._fast_client import FastClient
from udfs.http._transport import BoundedTransport
from udfs.http._url import PlainURL, plain_parts

BASES = [
    "",
    "http://example.org",
    "https://example.org:8443/api/v1",
    "http://[::1]:80/a%20b/",
    "http://u:p@h/x",
    "http://example.org/a?b=c",
    "http://example.org/a b/ä",
    "http://example.org/a#d",
    "/only/a/path",
]

PLAIN = ["/", "/a/b/", "/a?", "/a?b=c&d=%20", "/10:00", "/a%2Fb", "/a.b", "https://H.org:443/x?y=z"]
OTHER = ["a", "", "/a/../b", "/.", "/.a", "/a b", "/é", "/a#b", "http://h", "http://u@h/x", "/%zz", "/" + "a" * 5000]

ATTRIBUTES = (
    *("scheme", "raw_scheme", "userinfo", "username", "password", "host", "raw_host", "port", "netloc", "path"),
    *("query", "params", "raw_path", "fragment", "is_absolute_url", "is_relative_url"),
)
VIEWS: list[Callable[[Any], Any]] = [str, hash, lambda url: url == httpx.URL(str(url)), lambda url: url.join("../x")]


def ours(**options: Any) -> httpx.AsyncClient:
    transport = BoundedTransport(httpx.AsyncBaseTransport(), math.inf)
    return FastClient(transport=transport, mounts={}, **options)


def theirs(**options: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.AsyncBaseTransport(), **options)  # its own transport loads certificates


def built(make: Callable[..., httpx.AsyncClient], base: str, url: str) -> httpx.URL | str:
    try:
        return make(base_url=base).build_request("GET", url).url
    except httpx.InvalidURL as error:
        return str(error)


@pytest.mark.parametrize("url", PLAIN)
def test_a_plain_url_is_not_parsed(url: str) -> None:
    assert isinstance(built(ours, "http://example.org/", url), PlainURL)


@pytest.mark.parametrize("url", [*OTHER, httpx.URL("/a")], ids=lambda url: str(url)[:20])
def test_any_other_url_is_left_to_the_parser(url: str | httpx.URL) -> None:
    assert plain_parts(url) is None
    assert type(built(ours, "http://example.org/", url)) is httpx.URL  # type: ignore[arg-type]


@given(st.sampled_from(BASES), st.text("aA0.~/:,=+@-%2?#& é{'\\", max_size=12), st.booleans())
@example("http://example.org", "//a", False)
def test_any_url_is_the_one_that_httpx_builds(base: str, url: str, is_absolute: bool) -> None:
    if is_absolute:
        url = "http://h:8000/" + url
    for name in ATTRIBUTES:  # each on a URL of its own: the first look at some attributes parses it
        found, expected = built(ours, base, url), built(theirs, base, url)
        assert getattr(found, name, found) == getattr(expected, name, expected)
    for view in VIEWS:
        found, expected = built(ours, base, url), built(theirs, base, url)
        assert isinstance(expected, str) or view(found) == view(expected)


@pytest.mark.parametrize("url", ["http://1.2.3.400/", "http://h:99999999/", "http://[x]/", "http://h..h/"])
def test_a_root_that_is_not_valid_fails_as_in_httpx(url: str) -> None:
    assert built(ours, "", url) == built(theirs, "", url)


@pytest.mark.parametrize("again", [copy, deepcopy, lambda url: pickle.loads(pickle.dumps(url)), httpx.URL])
def test_a_copy_is_the_same_url(again: Callable[[httpx.URL], httpx.URL]) -> None:
    url = PlainURL(httpx.URL("http://h:1"), "/a?b")
    assert (str(again(url)), again(url)) == ("http://h:1/a?b", httpx.URL("http://h:1/a?b"))


def test_two_urls_of_one_root_do_not_share_their_targets() -> None:
    root = httpx.URL("http://example.org/")
    assert [str(PlainURL(root, path)) for path in ("/a", "/b?c")] == ["http://example.org/a", "http://example.org/b?c"]
    assert str(root) == "http://example.org/"
