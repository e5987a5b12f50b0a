"""Origins: schemes that are refused, ports and names in TLS."""

from __future__ import annotations

import httpx
import pytest

from udfs.http import client
from udfs.http._origin import Origin, origin_of_url


@pytest.mark.parametrize(
    ("url", "name", "origin"),
    [
        ("http://h/a", None, Origin(b"http", b"h", 80)),
        ("https://h/a", None, Origin(b"https", b"h", 443)),
        ("https://h:80/a", "n", Origin(b"https", b"h", 80, "n")),
        ("http://h:443/a", "n", Origin(b"http", b"h", 443)),
    ],
)
def test_the_origin_has_the_schemes_port_and_a_name_only_in_tls(url: str, name: str | None, origin: Origin) -> None:
    assert origin_of_url(httpx.URL(url), name) == origin


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/", "/no/host", "http:///path"])
async def test_a_url_of_another_scheme_or_without_a_host_is_refused(url: str) -> None:
    async with client() as http:
        with pytest.raises(httpx.UnsupportedProtocol, match="must start with http"):
            await http.get(url)


def test_a_url_without_a_host_has_no_origin() -> None:
    """A client completes such a URL with its base URL; a transport that is used alone does not."""
    with pytest.raises(httpx.UnsupportedProtocol, match="name a host, got 'http'"):
        origin_of_url(httpx.URL("http:///path"))


async def test_a_base_url_without_a_scheme_is_named() -> None:
    async with client(base_url="127.0.0.1:8000") as http:
        with pytest.raises(httpx.UnsupportedProtocol, match="got none: complete the URL of the request, or base_url"):
            await http.get("/planes")
