"""from_asyncio with aiohttp: one session, whose connections the calls share."""

from __future__ import annotations

import math
from typing import Any

import aiohttp
import trio

from tests.support import outputs
from tests.udfs.http.serving import Peer, never, serving
from trio_asyncio_io import ordered_wait, unordered_wait
from trio_asyncio_io.adapters import from_asyncio

CONNECTIONS = 4


async def echo(peer: Peer) -> None:
    """Answer /<number> with the number, and all else with a 404."""
    is_number = peer.path[1:].isdigit()
    status = "200 OK" if is_number else "404 Not Found"
    await peer.respond(peer.path[1:].encode(), "content-type: application/json", status=status)


class Client:
    def __init__(self, address: str) -> None:
        self.address = address

    async def open(self) -> None:
        connector = aiohttp.TCPConnector(limit=CONNECTIONS)
        self.session = aiohttp.ClientSession(self.address, connector=connector)

    async def invoke(self, path: str) -> Any:
        async with self.session.get(path, raise_for_status=True) as response:
            return await response.json()

    async def close(self) -> None:
        await self.session.close()


async def test_concurrent_calls_share_the_connections_of_one_session() -> None:
    async with serving(echo) as server:
        paths = [f"/{number}" for number in range(200)]
        found = await outputs(ordered_wait(paths, from_asyncio(Client(server.url)), capacity=50, timeout=math.inf))
        assert found == list(range(200))
        assert 1 <= len(server.peers) <= CONNECTIONS


async def test_an_error_response_fails_only_its_own_element() -> None:
    errors = []

    async def on_error(path: str, error: Exception) -> None:
        errors.append(error)

    async with serving(echo) as server:
        client = from_asyncio(Client(server.url))
        source = ["/1", "/absent", "/2"]
        assert await outputs(ordered_wait(source, client, timeout=math.inf, on_error=on_error)) == [1, None, 2]
    (error,) = errors
    assert isinstance(error, aiohttp.ClientResponseError)
    assert error.status == 404


async def test_leaving_the_block_ends_the_request_on_the_server() -> None:
    requested = trio.Event()

    async def hang(peer: Peer) -> None:
        requested.set()
        await never(peer)

    async with serving(hang) as server:
        async with unordered_wait(["/"], from_asyncio(Client(server.url)), timeout=math.inf):
            await requested.wait()
        await server.peers[0].ended.wait()
