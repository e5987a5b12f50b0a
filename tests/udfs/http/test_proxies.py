"""Proxies, given or of the environment: which requests pass through them, over HTTP and in tunnels."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.udfs.http.proxying import proxying
from tests.udfs.http.serving import client_context, ok, refusing, server_context, serving
from udfs.http import client
from udfs.http._client import environment_proxies, proxy_mounts

PROXY = "http://user:secret@127.0.0.1:1"


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize("is_secure", [False, True], ids=["http", "https"])
async def test_requests_pass_through_the_given_proxy(is_secure: bool) -> None:
    async with (
        proxying() as proxy,
        serving(ok, server_context() if is_secure else None) as server,
        client(base_url=server.url, proxy=proxy.url, verify=client_context()) as http,
    ):
        assert (await http.post("/a", content=b"weather")).text == "/a"
        assert server.requests[0].body == b"weather"
        target = f"CONNECT 127.0.0.1:{server.port}" if is_secure else f"POST {server.url}/a"
        assert proxy.lines == [f"{target} HTTP/1.1"]


async def test_a_proxy_that_refuses_a_tunnel_is_a_proxy_error() -> None:
    async with proxying() as proxy, client(proxy=proxy.url, verify=client_context()) as http:
        proxy.status = "403 Forbidden"
        with pytest.raises(httpx.ProxyError, match="403") as caught:
            await http.get("https://127.0.0.1:1/a")
        assert caught.value.request.url.path == "/a"


async def test_an_unreachable_proxy_is_a_connect_error() -> None:
    with refusing() as port:
        async with client(proxy=f"http://user:secret@127.0.0.1:{port}", verify=client_context()) as http:
            with pytest.raises(httpx.ConnectError) as caught:
                await http.get("http://127.0.0.1:1/")
    assert "secret" not in str(caught.value)


async def test_a_mount_is_used_instead_of_the_proxy() -> None:
    named = httpx.MockTransport(lambda _: httpx.Response(200, text="mock"))
    async with client(proxy=PROXY, mounts={"http://mock": named}, verify=client_context()) as http:
        assert (await http.get("http://mock/")).text == "mock"


async def test_a_given_proxy_replaces_those_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", PROXY)
    async with (
        proxying() as proxy,
        serving(ok) as server,
        client(proxy=proxy.url, trust_env=True, verify=client_context()) as http,
    ):
        assert (await http.get(server.url)).text == "/"
        assert len(proxy.lines) == 1


def test_a_proxy_of_another_protocol_is_refused_without_its_password() -> None:
    with pytest.raises(ValueError, match="proxy URL") as caught:
        client(proxy="ftp://user:secret@127.0.0.1")
    assert "secret" not in str(caught.value)


# Proxies of the environment


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
async def test_requests_pass_through_a_proxy_of_the_environment_with_trust_env(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    async with proxying() as proxy, serving(ok) as server:
        monkeypatch.setenv(name, proxy.url)
        async with client(base_url=server.url, trust_env=True, verify=client_context()) as http:
            assert (await http.get("/a")).text == "/a"
        assert proxy.targets == [f"{server.url}/a"]


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
async def test_a_request_to_which_no_proxy_applies_is_sent_to_its_origin(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, no_proxy: str
) -> None:
    monkeypatch.setenv(name, value)
    monkeypatch.setenv("NO_PROXY", no_proxy)
    async with serving(ok) as server, client(base_url=server.url, trust_env=True, verify=client_context()) as http:
        assert (await http.get("/a")).text == "/a"


async def test_proxies_are_ignored_without_trust_env(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", PROXY)
    async with serving(ok) as server, client(base_url=server.url, verify=client_context()) as http:
        assert (await http.get("/a")).text == "/a"


async def test_proxies_are_ignored_with_another_transport(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", PROXY)
    mock = httpx.MockTransport(lambda _: httpx.Response(200, text="mock"))
    async with client(transport=mock, trust_env=True, verify=client_context()) as http:
        assert (await http.get("http://127.0.0.1/")).text == "mock"


async def test_a_redirect_passes_through_the_proxy_of_its_url(monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        proxying() as proxy,
        serving(ok, server_context()) as target,
        serving(lambda peer: peer.respond(b"", f"location: {target.url}/b", status="302 Found")) as server,
    ):
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        async with client(trust_env=True, follow_redirects=True, verify=client_context()) as http:
            assert (await http.get(f"{server.url}/a")).text == "/b"
        assert proxy.targets == [f"127.0.0.1:{target.port}"]


@pytest.mark.parametrize(
    "variables",
    [
        {"HTTP_PROXY": "proxy:1"},
        {"HTTPS_PROXY": "http://a:1", "ALL_PROXY": "http://b:2"},
        {"ALL_PROXY": PROXY, "NO_PROXY": "localhost,example.org, .a.b,,https://c:8"},
        {"ALL_PROXY": PROXY, "NO_PROXY": "LocalHost,10.1.2.3,::1,d:80"},
        {"ALL_PROXY": PROXY, "NO_PROXY": "a,*"},
        {"NO_PROXY": "a"},
        {"FTP_PROXY": PROXY},
    ],
    ids=str,
)
async def test_the_environment_is_read_as_by_httpx(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    async with httpx.AsyncClient() as http:
        expected = {pattern.pattern: transport is not None for pattern, transport in http._mounts.items()}
    assert {pattern: proxy is not None for pattern, proxy in environment_proxies().items()} == expected


@pytest.mark.parametrize(("network", "pattern"), [("10.0.0.0/8", "all://10.0.0.0"), ("fe80::/10", "all://[fe80::]")])
def test_of_a_network_in_no_proxy_only_the_first_address_counts(
    monkeypatch: pytest.MonkeyPatch, network: str, pattern: str
) -> None:
    monkeypatch.setenv("NO_PROXY", network)
    assert environment_proxies() == {pattern: None}


def test_equal_proxies_share_a_transport() -> None:
    made: list[Any] = []
    mounts = proxy_mounts(
        {"http://": "a", "https://": "a", "all://b": None, "all://c": "d"}, lambda *, proxy: made.append(proxy) or proxy
    )
    assert mounts == {"http://": "a", "https://": "a", "all://b": None, "all://c": "d"}
    assert made == ["a", "d"]
