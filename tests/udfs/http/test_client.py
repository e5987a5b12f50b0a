"""`client`: its options, and the errors that its users see."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from udfs.http import StackTransport, client
from udfs.http._url import origin_of_url


def test_public_names_have_the_address_of_the_public_module() -> None:
    assert client.__module__ == StackTransport.__module__ == "udfs.http"


async def test_by_default_only_connecting_has_a_timeout() -> None:
    async with client() as http:
        assert http.timeout == httpx.Timeout(None, connect=30.0)
        assert http.build_request("GET", "http://127.0.0.1/").extensions["timeout"]["read"] is None


def test_other_versions_of_http_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^http1=False .*HTTP/1\.1"):
        client(http1=False)


@pytest.mark.parametrize(
    ("option", "advice"),
    [
        ({"uds": "/run/engine.sock"}, "transport=httpx.AsyncHTTPTransport"),
        ({"limits": httpx.Limits()}, "max_idle="),
        ({"http2": True}, "HTTP/1.1"),
    ],
)
def test_an_option_for_connections_is_refused_with_advice(option: dict[str, Any], advice: str) -> None:
    with pytest.raises(ValueError, match=f"^{next(iter(option))}=.*{advice}"):
        client(**option)


def test_an_unknown_option_is_refused_by_httpx() -> None:
    with pytest.raises(TypeError, match="proxyy"):
        client(proxyy="http://proxy")


# Origins


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/", "/no/host", "http:///path"])
async def test_a_url_of_another_scheme_or_without_a_host_is_refused(url: str) -> None:
    async with client() as http:
        with pytest.raises(httpx.UnsupportedProtocol, match="must start with http"):
            await http.get(url)


def test_a_name_in_tls_belongs_to_no_origin_without_tls() -> None:
    assert [origin_of_url(httpx.URL(f"{scheme}://h/"), "n").server_name for scheme in ("http", "https")] == [None, "n"]


def test_a_url_without_a_host_has_no_origin() -> None:
    """A client completes such a URL with its base URL; a transport that is used alone does not."""
    with pytest.raises(httpx.UnsupportedProtocol, match="name a host, got 'http'"):
        origin_of_url(httpx.URL("http:///path"))


async def test_a_base_url_without_a_scheme_is_named() -> None:
    async with client(base_url="127.0.0.1:8000") as http:
        with pytest.raises(httpx.UnsupportedProtocol, match="got none: complete the URL of the request, or base_url"):
            await http.get("/planes")
