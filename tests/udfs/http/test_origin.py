"""Origins: schemes that are refused, ports and names in TLS."""

from __future__ import annotations

import httpx
import pytest

from udfs.http import client
from udfs.http._origin import origin_of_url


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
