"""The SSL context of a transport."""

from __future__ import annotations

import ssl

import httpx
import pytest
import trio

from tests.udfs.http.serving import listening, ok, refusing, serving
from udfs.http import client


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
        with pytest.raises(httpx.ConnectError, match=r"(?i)ssl"):
            await http.get(f"https://127.0.0.1:{port}")


@pytest.mark.filterwarnings("ignore:`cert=...` is deprecated:DeprecationWarning")
async def test_certificates_that_cannot_be_loaded_are_a_connect_error() -> None:
    async with client(verify=False, cert="/does/not/exist.pem") as http:
        with pytest.raises(httpx.ConnectError, match="cannot load the certificates") as caught:
            await http.get("https://127.0.0.1:1/")
        assert caught.value.request.url.port == 1
