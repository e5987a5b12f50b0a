"""Proxies of the environment: a request to which one applies is refused, and every other one is sent."""

from __future__ import annotations

import httpx
import pytest

from tests.udfs.http.serving import ok, serving
from udfs.http import client

PROXY = "http://user:secret@127.0.0.1:1"


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
async def test_a_request_to_which_a_proxy_applies_is_refused_with_trust_env(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, PROXY)
    async with serving(ok) as server, client(base_url=server.url, trust_env=True) as http:
        with pytest.raises(httpx.ProxyError, match="trust_env") as caught:
            await http.get("/a")
        assert caught.value.request.url.path == "/a"
        assert "secret" not in str(caught.value)
        assert server.peers == []


@pytest.mark.parametrize(
    ("name", "value", "no_proxy"),
    [
        ("HTTPS_PROXY", PROXY, ""),
        ("HTTP_PROXY", PROXY, "127.0.0.1"),
        ("HTTP_PROXY", PROXY, "example.org, 127.0.0.1"),
        ("ALL_PROXY", PROXY, "*"),
        ("HTTP_PROXY", "", ""),
    ],
)
async def test_a_request_to_which_no_proxy_applies_is_sent(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, no_proxy: str
) -> None:
    monkeypatch.setenv(name, value)
    monkeypatch.setenv("NO_PROXY", no_proxy)
    async with serving(ok) as server, client(base_url=server.url, trust_env=True) as http:
        assert (await http.get("/a")).text == "/a"


async def test_proxies_are_ignored_without_trust_env(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", PROXY)
    async with serving(ok) as server, client(base_url=server.url) as http:
        assert (await http.get("/a")).text == "/a"


async def test_a_redirect_to_which_a_proxy_applies_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", PROXY)
    async with (
        serving(lambda peer: peer.respond(b"", "location: https://127.0.0.1:1/", status="302 Found")) as server,
        client(base_url=server.url, trust_env=True, follow_redirects=True) as http,
    ):
        with pytest.raises(httpx.ProxyError):
            await http.get("/a")
