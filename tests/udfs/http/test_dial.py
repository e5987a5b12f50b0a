"""Dialler: addresses, and names in TLS."""

from __future__ import annotations

import errno
import math
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
import trio

from tests.udfs.http.serving import Peer, client_context, ok, refusing, server_context, serving
from trio_asyncio_io import transient
from udfs.http import StackTransport, client


class Loopback(trio.abc.HostnameResolver):
    """Resolves every host to 127.0.0.1."""

    def __init__(self) -> None:
        self.lookups: list[tuple[bytes | None, int]] = []

    async def getaddrinfo(self, host: bytes | None, port: Any, *_: Any, **__: Any) -> Any:
        self.lookups.append((host, int(port)))
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
        except OSError as error:
            if error.errno not in {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}:
                raise
            pytest.skip("this machine has no IPv6")
        nursery.start_soon(trio.serve_listeners, serve, listeners)
        yield listeners[0].socket.getsockname()[1]
        nursery.cancel_scope.cancel()


async def test_an_ipv6_address_can_be_dialled() -> None:
    async with serving_ipv6() as port, client() as http:
        response = await http.get(f"http://[::1]:{port}/a")
        assert (response.text, response.request.headers["host"]) == ("/a", f"[::1]:{port}")


async def test_a_host_that_is_not_ascii_is_resolved_and_sent_as_idna(resolver: Loopback) -> None:
    async with serving(ok) as server, client() as http:
        response = await http.get(f"http://bücher.example:{server.port}/a")
        assert resolver.lookups == [(b"xn--bcher-kva.example", server.port)]
        assert response.request.headers["host"] == f"xn--bcher-kva.example:{server.port}"


@pytest.mark.parametrize(("scheme", "port"), [("http", 80), ("https", 443)])
async def test_each_scheme_has_its_default_port(monkeypatch: pytest.MonkeyPatch, scheme: str, port: int) -> None:
    async def refuse(host: str, port: int) -> Any:
        dialled.append((host, port))
        raise OSError("refused")

    dialled: list[tuple[str, int]] = []
    monkeypatch.setattr(trio, "open_tcp_stream", refuse)
    async with client(verify=False) as http:
        with pytest.raises(httpx.ConnectError, match="refused"):
            await http.get(f"{scheme}://example.org/")
    assert dialled == [("example.org", port)]


@pytest.mark.parametrize("host", [f"{'a' * 64}.example", "a..example", "localhost:99999"])
async def test_an_impossible_host_or_port_is_a_connect_error_that_no_retry_avoids(host: str) -> None:
    async with client() as http:
        with pytest.raises(httpx.ConnectError, match=rf"^{host}.* \(.*\): correct the host and the port") as caught:
            await http.get(f"http://{host}/")
    assert not transient(caught.value)


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.nan])
async def test_a_connect_timeout_that_is_not_positive_expires_immediately(seconds: float) -> None:
    async with client(timeout=httpx.Timeout(None, connect=seconds)) as http:
        with pytest.raises(httpx.ConnectTimeout):
            await http.get("http://127.0.0.1:1/")


async def test_sni_hostname_replaces_the_name_in_tls(resolver: Loopback) -> None:
    async with serving(ok, server_context("inner.example")) as server, client(verify=client_context()) as http:
        url = f"https://outer.example:{server.port}/a"
        with pytest.raises(httpx.ConnectError, match=r"outer\.example"):
            await http.get(url)
        assert (await http.get(url, extensions={"sni_hostname": "inner.example"})).text == "/a"


REFUSED = "Connection refused: start the service, or correct the host and the port in the URL"


async def test_the_error_of_a_service_that_is_down_says_so_once_and_what_to_do() -> None:
    with refusing() as port:
        async with client() as http:
            with pytest.raises(httpx.ConnectError, match=rf"127\.0\.0\.1:{port} failed: {REFUSED}$") as caught:
                await http.get(f"http://127.0.0.1:{port}/")
    assert isinstance(caught.value.__cause__, ConnectionRefusedError)
    assert caught.value.__cause__.__cause__ is None


async def test_the_error_of_addresses_that_fail_differently_has_all_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    errors = [OSError(errno.ECONNREFUSED, "one"), OSError(errno.EHOSTUNREACH, "two")]
    group = ExceptionGroup("", errors)

    async def fail(host: str, port: int) -> Any:
        await trio.lowlevel.checkpoint()
        raise OSError(f"all attempts to connect to {host}:{port} failed") from group

    monkeypatch.setattr(trio, "open_tcp_stream", fail)
    async with client() as http:
        with pytest.raises(httpx.ConnectError, match=r"failed: Connection refused, No route to host$") as caught:
            await http.get("http://service.example/")
    assert caught.value.__cause__ is group


class Unknown(Loopback):
    """Resolves no host."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number

    async def getaddrinfo(self, host: bytes | None, port: Any, *_: Any, **__: Any) -> Any:
        raise socket.gaierror(self._number, "Name or service not known")


@pytest.mark.parametrize(
    ("number", "is_transient"),
    [(socket.EAI_NONAME, False), (socket.EAI_AGAIN, True)],
    ids=["unknown", "no name server"],
)
@pytest.mark.parametrize("only_public", [False, True])
async def test_a_host_that_cannot_be_resolved_is_named(number: int, is_transient: bool, only_public: bool) -> None:
    trio.socket.set_custom_hostname_resolver(Unknown(number))
    try:
        async with client(transport=StackTransport(only_public=only_public)) as http:
            with pytest.raises(
                httpx.ConnectError, match=r"^the host servcie\.example cannot .* its spelling"
            ) as caught:
                await http.get("http://servcie.example/")
    finally:
        trio.socket.set_custom_hostname_resolver(None)
    assert transient(caught.value) is is_transient
