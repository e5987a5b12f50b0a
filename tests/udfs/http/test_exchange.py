"""Exchanger: requests and responses below httpx's objects."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import httpx
import pytest

from tests.udfs.http.serving import Peer, serving
from udfs.http import StackTransport, client
from udfs.http._exchange import Exchange, Exchanger
from udfs.http._origin import Origin
from udfs.http._request import RequestWriter

GET = b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n"


def sending(*parts: bytes) -> Callable[[Peer], Awaitable[None]]:
    async def respond(peer: Peer) -> None:
        for part in parts:
            await peer.stream.send_all(part)

    return respond


def response(body: bytes, *headers: bytes) -> bytes:
    lines = (b"Content-Length: %d" % len(body), *headers)
    return b"HTTP/1.1 200 OK\r\n%b\r\n\r\n%b" % (b"\r\n".join(lines), body)


@asynccontextmanager
async def exchanging(*parts: bytes) -> AsyncIterator[tuple[Exchanger, Origin, list[Peer]]]:
    async with serving(sending(*parts)) as server, StackTransport(keepalive_expiry=math.inf) as transport:
        url = httpx.URL(server.url)
        yield transport.exchanger, Origin(b"http", url.raw_host, url.port or 80), server.peers


def get() -> RequestWriter:
    return RequestWriter("GET", GET, {})


async def test_a_plain_body_that_has_arrived_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = []
    read = Exchange.read

    async def counted(exchange: Exchange) -> bytes:
        parts.append(await read(exchange))
        return parts[-1]

    monkeypatch.setattr(Exchange, "read", counted)
    async with serving(sending(response(b"weather"))) as server, client() as http:
        assert (await http.get(server.url)).content == b"weather"
    assert parts == [b"weather"]


async def test_an_exchange_that_is_released_cannot_be_read_and_may_be_released_again() -> None:
    async with exchanging(response(b"weather")) as (exchanger, origin, peers):
        exchange = await exchanger.begin(origin, get())
        assert await exchange.read() == b"weather"
        exchange.release()
        exchange.release()
        with pytest.raises(httpx.StreamClosed):
            await exchange.read()
        exchange = await exchanger.begin(origin, get())
        assert await exchange.read() == b"weather"
        exchange.release()
        assert [peer.paths for peer in peers] == [["/a", "/a"]]
