"""Unix sockets: with `uds=`, and with httpx's own transport."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from tests.support import PATIENCE
from tests.udfs.http.serving import Server, client_context, ok, server_context
from udfs.http import StackTransport, client


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    """A server on a Unix socket. Its TLS, if a test sets it, has a certificate for the host `engine`."""
    server = Server(ok)
    with trio.socket.socket(trio.socket.AF_UNIX) as listening:
        await listening.bind(str(tmp_path / "socket"))
        listening.listen()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.serve_listeners, server.serve, [trio.SocketListener(listening)])
            with trio.fail_after(PATIENCE):
                yield server
            nursery.cancel_scope.cancel()


@pytest.mark.parametrize("make", [StackTransport, httpx.AsyncHTTPTransport])
async def test_requests_are_sent_to_a_unix_socket(server: Server, tmp_path: Path, make: Any) -> None:
    async with client(transport=make(uds=str(tmp_path / "socket")), base_url="http://engine/v1") as http:
        assert (await http.get("/containers")).text == "/v1/containers"
        assert (await http.post("/containers", content=b"weather")).text == "/v1/containers"
    assert server.requests[0].headers["host"] == "engine"
    assert [request.body for request in server.requests] == [b"", b"weather"]
    assert len(server.peers) == 1


async def test_a_mount_sends_the_requests_to_one_host_to_a_unix_socket(server: Server, tmp_path: Path) -> None:
    async with client(mounts={"http://engine": StackTransport(uds=tmp_path / "socket")}) as http:
        assert (await http.get("http://engine/a")).text == "/a"
        assert (await http.get("http://engine:80/b")).text == "/b"
    assert [peer.paths for peer in server.peers] == [["/a", "/b"]]


async def test_tls_on_a_unix_socket_verifies_the_host_of_the_url(server: Server, tmp_path: Path) -> None:
    server.tls = server_context("engine")
    transport = StackTransport(uds=tmp_path / "socket", verify=client_context())
    async with client(transport=transport) as http:
        assert (await http.get("https://engine/a")).text == "/a"
        with pytest.raises(httpx.ConnectError, match="certificate"):
            await http.get("https://another/")


async def test_a_missing_unix_socket_is_a_connect_error_with_its_path(tmp_path: Path) -> None:
    async with client(transport=StackTransport(uds=tmp_path / "missing")) as http:
        with pytest.raises(httpx.ConnectError, match=r"/missing") as caught:
            await http.get("http://engine/a")
    assert caught.value.request.url.path == "/a"
