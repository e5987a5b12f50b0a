"""The SSL context of a transport."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from tests.udfs.http.proxying import proxying
from tests.udfs.http.serving import AUTHORITY, listening, ok, refusing, server_context, serving
from trio_asyncio_io import transient
from udfs.http import StackTransport, client


async def test_the_context_is_made_once_and_only_for_https(monkeypatch: pytest.MonkeyPatch) -> None:
    def counted(**options: object) -> ssl.SSLContext:
        made.append(options)
        return ssl.create_default_context()

    made: list[object] = []
    monkeypatch.setattr(httpx, "create_ssl_context", counted)
    async with serving(ok) as server, client(verify=False) as http:
        await http.get(server.url)
        assert made == []
        with refusing() as port:
            for _ in range(2):
                with pytest.raises(httpx.ConnectError):
                    await http.get(f"https://127.0.0.1:{port}")
        assert made == [{"verify": False, "cert": None, "trust_env": False}]


async def test_a_server_without_tls_is_a_connect_error() -> None:
    async def plain(stream: trio.SocketStream) -> None:
        await stream.send_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        async for _ in stream:
            pass

    async with listening(plain) as port, client() as http:
        with pytest.raises(
            httpx.ConnectError, match=rf"^127\.0\.0\.1:{port} does not speak TLS: write http://"
        ) as caught:
            await http.get(f"https://127.0.0.1:{port}")
    assert not transient(caught.value)


@pytest.mark.filterwarnings("ignore:`cert=...` is deprecated:DeprecationWarning")
@pytest.mark.parametrize("text", [None, "no certificate"])
@pytest.mark.parametrize("way", ["cert", "SSL_CERT_FILE"])
async def test_certificates_that_cannot_be_loaded_are_an_error_that_no_retry_avoids(
    way: str, text: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "own.pem"
    if text is not None:
        path.write_text(text)
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    options: dict[str, Any] = {"verify": False, "cert": str(path)} if way == "cert" else {"trust_env": True}
    async with client(**options) as http:
        with pytest.raises(httpx.LocalProtocolError, match="cannot load the certificates") as caught:
            await http.get("https://127.0.0.1:1/")
        assert caught.value.request.url.port == 1
    assert not transient(caught.value)


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    """The certificate of the authority that the servers' certificates have."""
    path = tmp_path / "company.pem"
    AUTHORITY.cert_pem.write_to_path(path)
    return path


@pytest.mark.parametrize("kind", [str, Path])
async def test_the_path_of_a_companys_certificate_is_enough(authority: Path, kind: Any) -> None:
    async with serving(ok, server_context()) as server, client(verify=kind(authority)) as http:
        assert (await http.get(server.url + "/a")).text == "/a"


async def test_a_directory_replaces_the_authorities(tmp_path: Path) -> None:
    async with serving(ok, server_context()) as server, client(verify=tmp_path) as http:
        with pytest.raises(httpx.ConnectError, match="certificate"):
            await http.get(server.url)


@pytest.mark.parametrize("trust_env", [False, True])
async def test_the_environment_names_authorities_only_if_it_is_trusted(
    authority: Path, monkeypatch: pytest.MonkeyPatch, trust_env: bool
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    async with serving(ok, server_context()) as server, client(trust_env=trust_env) as http:
        if trust_env:
            assert (await http.get(server.url + "/a")).text == "/a"
        else:
            with pytest.raises(
                httpx.ConnectError, match=r"127\.0\.0\.1 is not valid .*verify=.*SSL_CERT_FILE"
            ) as caught:
                await http.get(server.url)
            assert not transient(caught.value)


async def test_a_certificate_for_another_host_is_an_error_with_that_advice(authority: Path) -> None:
    async with serving(ok, server_context("other.example")) as server, client(verify=authority) as http:
        with pytest.raises(httpx.ConnectError, match=r"certificate of 127\.0\.0\.1 .*: check the host in the URL$"):
            await http.get(server.url)


@pytest.mark.parametrize("content", [None, "no certificate"], ids=["missing", "not a certificate"])
async def test_a_path_without_certificates_is_refused_immediately(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "company.pem"
    if content is not None:
        path.write_text(content)
    for make in (client, StackTransport):
        with pytest.raises(ValueError, match=r"^verify must be .*company\.pem', which cannot be loaded: "):
            make(verify=str(path))


async def test_anything_else_is_refused() -> None:
    with pytest.raises(TypeError, match=r"^verify must be .*, got None$"):
        client(verify=None)  # type: ignore[arg-type]


async def test_a_path_applies_to_proxies_as_well(authority: Path) -> None:
    with pytest.raises(ValueError, match=r"^verify must be"):
        client(verify="/does/not/exist.pem", transport=StackTransport(), proxy="http://127.0.0.1:1")
    async with (
        serving(ok, server_context()) as server,
        proxying() as proxy,
        client(verify=authority, proxy=proxy.url) as http,
    ):
        assert (await http.get(server.url + "/a")).text == "/a"


# The scheme of the URL


@pytest.mark.parametrize("answer", [b"", b"\x15\x03\x01\x00\x02\x02\x46"], ids=["closed", "an alert of TLS"])
async def test_http_on_a_port_for_https_is_an_error_that_names_the_scheme(answer: bytes) -> None:
    async def of_tls(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(answer)
        await stream.aclose()

    async with listening(of_tls) as port, client() as http:
        with pytest.raises(httpx.ProtocolError, match="write https:// in the URL"):
            await http.get(f"http://127.0.0.1:{port}")
