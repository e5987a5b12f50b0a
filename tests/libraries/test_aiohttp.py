"""from_asyncio with aiohttp: one session, whose connections the calls share, and a server in another loop."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import trio
from aiohttp import web

from tests.support import outputs
from trio_asyncio_io import ordered_wait, unordered_wait
from trio_asyncio_io.adapters import from_asyncio

CONNECTIONS = 4


class Server:
    """Answers /double/<number>, and never /never. Its `invoke` returns what a test wants to know."""

    def __init__(self) -> None:
        self.ports: set[Any] = set()
        self.waiting = asyncio.Event()
        self.left = asyncio.Event()

    async def open(self) -> None:
        app = web.Application()
        app.router.add_get("/double/{number}", self.double)
        app.router.add_get("/never", self.never)
        self.runner = web.AppRunner(app, handler_cancellation=True)
        await self.runner.setup()
        await web.TCPSite(self.runner, "127.0.0.1", 0).start()

    async def double(self, request: web.Request) -> web.Response:
        assert request.transport is not None
        self.ports.add(request.transport.get_extra_info("peername"))
        return web.json_response(2 * int(request.match_info["number"]))

    async def never(self, request: web.Request) -> web.Response:
        self.waiting.set()
        try:
            return await asyncio.Event().wait() or web.Response()
        finally:
            self.left.set()

    async def invoke(self, question: str) -> Any:
        if question == "address":
            return f"http://127.0.0.1:{self.runner.addresses[0][1]}"
        await getattr(self, question).wait()
        return None

    async def close(self) -> None:
        await self.runner.cleanup()


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


@pytest.fixture
async def server() -> AsyncIterator[tuple[Server, Any]]:
    server = Server()
    adapter: from_asyncio[Any] = from_asyncio(server)
    await adapter.open()
    yield server, adapter.invoke
    await adapter.close()


async def test_concurrent_calls_share_the_connections_of_one_session(server: tuple[Server, Any]) -> None:
    state, ask = server
    client = from_asyncio(Client(await ask("address")))
    paths = [f"/double/{number}" for number in range(200)]
    found = await outputs(ordered_wait(paths, client, capacity=50, timeout=math.inf))
    assert found == [2 * number for number in range(200)]
    assert 1 <= len(state.ports) <= CONNECTIONS


async def test_an_error_response_fails_only_its_own_element(server: tuple[Server, Any]) -> None:
    _, ask = server
    errors = []

    async def on_error(path: str, error: Exception) -> None:
        errors.append(error)

    client = from_asyncio(Client(await ask("address")))
    source = ["/double/1", "/absent", "/double/2"]
    assert await outputs(ordered_wait(source, client, timeout=math.inf, on_error=on_error)) == [2, None, 4]
    (error,) = errors
    assert isinstance(error, aiohttp.ClientResponseError)
    assert error.status == 404


async def test_leaving_the_block_ends_the_request_on_the_server(server: tuple[Server, Any]) -> None:
    _, ask = server
    client = from_asyncio(Client(await ask("address")))
    async with unordered_wait(["/never"], client, timeout=math.inf):
        await ask("waiting")
    with trio.CancelScope(shield=True):
        await ask("left")
