"""Only globally routable addresses: the address that is checked is the one that is connected to."""

from __future__ import annotations

import socket
from typing import Any

import httpx
import httpx2
import pytest
import trio

from tests.udfs.http.serving import Peer, ok, serving
from udfs.http import HostRefusedError, StackTransport, client
from udfs.http import httpx2 as of_httpx2
from udfs.http._dial import is_public

PUBLIC, OTHER = "93.184.215.14", "8.8.8.8"


@pytest.mark.parametrize(
    "address",
    [
        *("8.8.8.8", "168.63.129.17", "166.12.0.1", "2001:4860:4860::8888"),
        *("::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1"),  # contain an address of version 4
    ],
)
def test_a_globally_routable_address_is_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        *("0.0.0.0", "10.0.0.1", "100.64.0.1", "127.0.0.1", "169.254.169.254", "172.16.0.1", "192.168.1.1"),
        *("198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"),
        *("168.63.129.16", "161.26.0.10", "166.9.1.1", "::ffff:168.63.129.16"),  # services inside clouds
        *("::", "::1", "fe80::1", "fe80::1%1", "fc00::1", "fec0::1", "ff02::1", "2001:db8::1"),
        *("::ffff:10.0.0.1", "::10.0.0.1", "64:ff9b::a00:1", "64:ff9b:1::a00:1", "2002:a00:1::", "2001::1"),
    ],
)
def test_any_other_address_is_not_public(address: str) -> None:
    assert not is_public(address)


class Names(trio.abc.HostnameResolver):
    """Resolves a name to the next of these lists of addresses."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked: list[bytes | None] = []

    async def getaddrinfo(self, host: bytes | None, port: Any, *_: Any) -> Any:
        self.asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in self.answers.pop(0)]

    async def getnameinfo(self, *_: Any) -> Any:
        raise NotImplementedError


@pytest.fixture
def dialled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The hosts that are connected to. Public ones are on loopback, and one of them refuses connections."""
    hosts: list[str] = []
    original = trio.open_tcp_stream

    async def open_tcp_stream(host: str, port: int) -> trio.SocketStream:
        hosts.append(host)
        if host == OTHER:
            raise ConnectionRefusedError(host)
        return await original("127.0.0.1", port)

    monkeypatch.setattr(trio, "open_tcp_stream", open_tcp_stream)
    return hosts


async def test_a_name_that_changes_its_address_is_connected_to_at_the_one_that_was_checked(dialled: list[str]) -> None:
    names = Names([PUBLIC], ["127.0.0.1"])
    trio.socket.set_custom_hostname_resolver(names)
    async with serving(ok) as server, client(transport=StackTransport(only_public=True)) as http:
        assert (await http.get(f"http://rebinding.example:{server.port}/a")).text == "/a"
        assert (dialled, names.asked) == ([PUBLIC], [b"rebinding.example"])
        server.peers[0].ended.set()
        await server.peers[0].stream.aclose()
        with pytest.raises(
            HostRefusedError, match=r"rebinding\.example has the address 127\.0\.0\.1, .* change the URL"
        ):
            await http.get(f"http://rebinding.example:{server.port}/b")
        assert dialled == [PUBLIC]


async def test_a_name_with_one_address_inside_the_network_is_refused(dialled: list[str]) -> None:
    trio.socket.set_custom_hostname_resolver(Names([PUBLIC, "10.0.0.1"]))
    async with client(transport=StackTransport(only_public=True)) as http:
        with pytest.raises(HostRefusedError, match=r"10\.0\.0\.1") as caught:
            await http.get("http://mixed.example/")
        assert caught.value.request.url.host == "mixed.example"
    assert dialled == []


async def test_the_next_address_is_connected_to_if_one_refuses(dialled: list[str]) -> None:
    trio.socket.set_custom_hostname_resolver(Names([OTHER, PUBLIC]))
    async with serving(ok) as server, client(transport=StackTransport(only_public=True)) as http:
        assert (await http.get(f"http://two.example:{server.port}/a")).text == "/a"
    assert dialled == [OTHER, PUBLIC]


async def test_a_host_whose_addresses_all_refuse_is_a_connect_error(dialled: list[str]) -> None:
    trio.socket.set_custom_hostname_resolver(Names([OTHER, OTHER]))
    async with client(transport=StackTransport(only_public=True)) as http:
        with pytest.raises(httpx.ConnectError, match="8"):
            await http.get("http://down.example/")
    assert dialled == [OTHER]


async def test_a_redirect_into_the_network_is_refused(dialled: list[str]) -> None:
    async def moved(peer: Peer) -> None:
        await peer.respond(b"", f"location: http://127.0.0.1:{inside.port}/", status="302 Moved")

    trio.socket.set_custom_hostname_resolver(Names([PUBLIC]))
    async with (
        serving(ok) as inside,
        serving(moved) as server,
        client(transport=StackTransport(only_public=True), follow_redirects=True) as http,
    ):
        with pytest.raises(HostRefusedError, match=r"127\.0\.0\.1"):
            await http.get(f"http://public.example:{server.port}/")
        assert (dialled, inside.peers) == ([PUBLIC], [])


async def test_the_transport_for_httpx2_refuses_the_same() -> None:
    transport = of_httpx2.StackTransport(only_public=True)
    async with serving(ok) as server, of_httpx2.client(transport=transport) as http:
        with pytest.raises(of_httpx2.HostRefusedError, match="not globally routable") as caught:
            await http.get(server.url)
        assert isinstance(caught.value, httpx2.RequestError)
        assert server.peers == []
