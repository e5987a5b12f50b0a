"""Dialling: which address, which name in TLS, how often, and what is left of an attempt that failed."""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
import trio
import trustme

from tests.udfs.http.serving import Peer, ok, refusing, serving
from udfs.http import client
from udfs.http._dial import Dialler
from udfs.http._origin import Origin


class Loopback(trio.abc.HostnameResolver):
    """Every host is this one."""

    def __init__(self) -> None:
        self.asked: list[tuple[bytes | None, int]] = []

    async def getaddrinfo(self, host: bytes | None, port: Any, *_: Any, **__: Any) -> Any:
        self.asked.append((host, int(port)))
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", int(port)))]

    async def getnameinfo(self, *_: Any) -> Any:
        raise NotImplementedError


@pytest.fixture
async def resolver() -> AsyncIterator[Loopback]:
    mine = Loopback()
    trio.socket.set_custom_hostname_resolver(mine)
    yield mine
    trio.socket.set_custom_hostname_resolver(None)


@asynccontextmanager
async def serving_ipv6() -> AsyncIterator[int]:
    async def serve(stream: trio.SocketStream) -> None:
        peer = Peer(stream)
        while await peer.next_request():
            await ok(peer)

    async with trio.open_nursery() as nursery:
        try:
            listeners = await trio.open_tcp_listeners(0, host="::1")
        except OSError:
            pytest.skip("there is no IPv6 here")
        nursery.start_soon(trio.serve_listeners, serve, listeners)
        yield listeners[0].socket.getsockname()[1]
        nursery.cancel_scope.cancel()


async def test_an_ipv6_address_is_an_address() -> None:
    async with serving_ipv6() as port, client() as http:
        response = await http.get(f"http://[::1]:{port}/a")
        assert (response.text, response.request.headers["host"]) == ("/a", f"[::1]:{port}")


async def test_a_host_that_is_not_ascii_is_looked_up_and_named_as_idna_has_it(resolver: Loopback) -> None:
    async with serving(ok) as server, client() as http:
        response = await http.get(f"http://bücher.example:{server.port}/a")
        assert resolver.asked == [(b"xn--bcher-kva.example", server.port)]
        assert response.request.headers["host"] == f"xn--bcher-kva.example:{server.port}"


@pytest.mark.parametrize(("scheme", "port"), [("http", 80), ("https", 443)])
async def test_a_scheme_has_its_port(monkeypatch: pytest.MonkeyPatch, scheme: str, port: int) -> None:
    async def refuse(host: str, port: int) -> Any:
        asked.append((host, port))
        raise OSError("refused")

    asked: list[tuple[str, int]] = []
    monkeypatch.setattr(trio, "open_tcp_stream", refuse)
    async with client(verify=False) as http:
        with pytest.raises(httpx.ConnectError, match="refused"):
            await http.get(f"{scheme}://example.org/")
    assert asked == [("example.org", port)]


async def test_a_host_that_cannot_be_is_a_connect_error() -> None:
    async with client() as http:
        with pytest.raises(httpx.ConnectError):
            await http.get(f"http://{'a' * 64}.example/")


async def test_the_name_in_tls_can_be_given(resolver: Loopback) -> None:
    authority = trustme.CA()
    serving_side, asking_side = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), ssl.create_default_context()
    authority.issue_cert("inner.example").configure_cert(serving_side)
    authority.configure_trust(asking_side)
    async with serving(ok, serving_side) as server, client(verify=asking_side) as http:
        url = f"https://outer.example:{server.port}/a"
        with pytest.raises(httpx.ConnectError, match=r"outer\.example"):
            await http.get(url)
        assert (await http.get(url, extensions={"sni_hostname": "inner.example"})).text == "/a"


async def test_attempts_follow_each_other_as_httpcores_do(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    async def refuse(*_: Any) -> Any:
        at.append(trio.current_time() - start)
        raise OSError("refused")

    at: list[float] = []
    start = trio.current_time()
    monkeypatch.setattr(trio, "open_tcp_stream", refuse)
    with pytest.raises(httpx.ConnectError, match="refused"):
        await Dialler(Origin(b"http", b"h", 80), None, retries=4).connect(None)
    assert at == [0, 0, 0.5, 1.5, 3.5]


async def test_an_attempt_that_succeeds_is_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    real = trio.open_tcp_stream
    attempts = []

    async def once_refused(host: str, port: int) -> Any:
        attempts.append(port)
        if len(attempts) == 1:
            raise OSError("refused")
        return await real(host, port)

    monkeypatch.setattr(trio, "open_tcp_stream", once_refused)
    async with serving(ok) as server, client(base_url=server.url, retries=3) as http:
        assert (await http.get("/a")).text == "/a"
    assert len(attempts) == 2


async def test_without_retries_there_is_one_attempt() -> None:
    with refusing() as port:
        async with client() as http:
            with pytest.raises(httpx.ConnectError, match=str(port)):
                await http.get(f"http://127.0.0.1:{port}/")
