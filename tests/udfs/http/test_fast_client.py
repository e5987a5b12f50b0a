"""FastClient: which requests take the shorter way, and what they leave to httpx."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from tests.udfs.http.serving import Peer, ok, serving
from udfs.http import StackTransport
from udfs.http._fast_client import FastClient
from udfs.http._transport import BoundedTransport


class Counted(BoundedTransport):
    """Counts the requests that reach it through httpx's loop. All others reach `answer` directly."""

    through_httpx = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.through_httpx += 1
        return await super().handle_async_request(request)


@asynccontextmanager
async def counting(url: str, **options: Any) -> AsyncIterator[tuple[FastClient, Counted]]:
    transport = Counted(StackTransport(), math.inf)
    async with FastClient(transport=transport, mounts={}, base_url=url, trust_env=False, **options) as http:
        await http.get("/first")
        assert transport.through_httpx == 1
        transport.through_httpx = 0
        yield http, transport


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"json": {}, "method": "POST"},
        {"params": {"a": "b"}},
        {"headers": {"X": "1"}},
        {"cookies": {"a": "b"}},
        {"auth": None},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:Setting per-request cookies:DeprecationWarning")
async def test_a_usual_request_goes_directly_to_the_transport(options: dict[str, Any]) -> None:
    async with serving(ok) as server, counting(server.url) as (http, transport):
        await http.request(**{"method": "GET", "url": "/a", **options})
        assert (len(server.requests), transport.through_httpx) == (2, 0)


async def _hook(_: object) -> None: ...


@pytest.mark.parametrize(
    "change",
    [
        {"auth": httpx.BasicAuth("user", "secret")},
        {"auth": httpx.Auth()},
        {"event_hooks": {"request": [_hook]}},
        {"event_hooks": {"response": [_hook]}},
        {"base_url": "http://user:secret@127.0.0.1"},
    ],
    ids=lambda change: next(iter(change)),
)
async def test_any_other_request_passes_through_httpx(change: dict[str, Any]) -> None:
    async with serving(ok) as server, counting(server.url) as (http, transport):
        for name, value in change.items():
            setattr(http, name, httpx.URL(value).copy_with(port=server.port) if name == "base_url" else value)
        await http.get("/a")
        assert transport.through_httpx == 1


async def test_a_redirect_is_handed_to_httpx_and_not_requested_again() -> None:
    async def moved(peer: Peer) -> None:
        await (ok(peer) if peer.path == "/b" else peer.respond(b"", "location: /b", status="302 Moved"))

    async with serving(moved) as server, counting(server.url) as (http, transport):
        response = await http.get("/a")
        assert response.next_request is not None
        assert "udfs.http.answered" not in response.next_request.extensions
        assert (await http.get("/a", follow_redirects=True)).text == "/b"
        assert server.paths == ["/first", "/a", "/a", "/b"]
        assert transport.through_httpx == 3
        assert response.elapsed.total_seconds() > 0
