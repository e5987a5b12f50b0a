"""Unix sockets, through httpx's own transport."""

from __future__ import annotations

from pathlib import Path

import httpx
import trio

from tests.udfs.http.serving import Server, ok
from udfs.http import client


async def test_a_mount_sends_the_requests_to_one_host_to_a_unix_socket(tmp_path: Path) -> None:
    server = Server(ok)
    path = str(tmp_path / "socket")
    with trio.socket.socket(trio.socket.AF_UNIX) as listening:
        await listening.bind(path)
        listening.listen()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.serve_listeners, server.serve, [trio.SocketListener(listening)])
            async with client(mounts={"http://engine": httpx.AsyncHTTPTransport(uds=path)}) as http:
                assert (await http.get("http://engine/a")).text == "/a"
            nursery.cancel_scope.cancel()
