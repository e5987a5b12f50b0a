"""How a column connects: certificates, proxies of the environment, and failures that no retry avoids."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest

from tests.udfs.http.proxying import proxying
from tests.udfs.http.serving import AUTHORITY, ok, server_context, serving
from tests.udfs.http_columns.working import get, request, responding
from udfs._trio_thread import runtime
from udfs.http_columns._options import HttpOptions


@pytest.fixture(autouse=True)
def _clients_close_at_the_end_of_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a test would get the client of an earlier one with equal options, and with that one's environment."""
    monkeypatch.setattr(runtime, "IDLE_SECONDS", 0.0)


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    """The certificate of the authority that the servers' certificates have."""
    path = tmp_path / "company.pem"
    AUTHORITY.cert_pem.write_to_path(path)
    return path


@pytest.mark.parametrize("way", ["verify", "trust_env", "off"])
async def test_a_companys_certificate_is_accepted(way: str, authority: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    options: dict[str, Any] = {"verify": {"verify": authority}, "trust_env": {"trust_env": True}}.get(
        way, {"verify": False}
    )
    async with serving(ok, server_context()) as server:
        (answer,) = await get(server.url + "/a", **options)
        assert (answer["error"], answer["body"]) == (None, "/a")


async def test_an_invalid_certificate_is_not_retried_and_the_error_names_the_remedy() -> None:
    async with serving(ok, server_context()) as server:
        [row] = await get(server.url)
    assert (row["error"]["type"], row["error"]["attempts"]) == ("ConnectError", 1)
    assert "certificate of 127.0.0.1 is not valid" in row["error"]["message"]
    assert "verify=" in row["error"]["message"]


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_an_unknown_host_is_not_retried_and_the_error_names_it(method: str) -> None:
    row = await request(method, "http://servcie.invalid/?token=secret")
    assert (row["error"]["type"], row["error"]["attempts"]) == ("ConnectError", 1)
    assert row["error"]["message"].startswith("the host servcie.invalid cannot be resolved")


# Proxies


async def test_requests_pass_through_the_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    async with proxying() as proxy, responding(200, (302, {"location": "/b"}), (200, {"X-A": "b"}, b"there")) as server:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        await get(server.url + "/a")
        assert proxy.targets == []
        own = {"X-Own": "é", "Cookie": "c"}
        row = await request("POST", server.url + "/a", own, "body", trust_env=True, follow_redirects=True)
        assert (row["status"], row["body"], row["headers"]["x-a"]) == (200, "there", "b")
        assert proxy.targets[0] == server.url + "/a"
    _, first, second = server.requests
    assert (first.method, first.body, first.headers["cookie"]) == ("POST", b"body", "c")
    assert (second.method, second.path, "cookie" in second.headers) == ("GET", "/b", False)


async def test_a_proxy_that_refuses_is_an_error_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(ok) as server, proxying() as proxy:
        proxy.status = "407 Proxy Authentication Required"
        monkeypatch.setenv("HTTPS_PROXY", proxy.url.replace("//", "//u:sk-SECRET@"))
        [row] = await get(server.url.replace("http:", "https:"), trust_env=True)
    assert row["error"]["type"] == "ProxyError"
    assert "SECRET" not in str(row)


async def test_a_refused_host_is_not_requested_from_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    async with proxying() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        [row] = await get("http://inside.example/", trust_env=True, allowed_hosts=["example.org"])
    assert (row["error"]["type"], proxy.targets) == ("HostRefusedError", [])


# Options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"verify": ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)}, "verify must be .* cannot be sent .*: give a path"),
        ({"verify": 1}, "verify must be True, False or the path of .*, got 1"),
        ({"trust_env": "yes"}, "trust_env must be True or False, got 'yes'"),
    ],
    ids=["context", "number", "text"],
)
def test_an_option_of_a_wrong_type_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=f"^{message}"):
        HttpOptions(**options)


def test_only_public_does_not_fit_the_proxies_of_the_environment() -> None:
    with pytest.raises(ValueError, match="only_public and trust_env do not fit together"):
        HttpOptions(only_public=True, trust_env=True)


async def test_a_path_that_the_workers_do_not_have_ends_the_task() -> None:
    async with responding(200) as server:
        with pytest.raises(ValueError, match=r"^verify must be .*'/no/such\.pem', which cannot be loaded"):
            await get(server.url, verify="/no/such.pem")
