"""Exchanger: whole responses, without httpx's requests and responses."""

from __future__ import annotations

import gzip
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import httpx
import pytest

from tests.udfs.http.serving import Peer, serving
from udfs.http import BodyTooLargeError, StackTransport, client
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


async def exchanged(exchanger: Exchanger, origin: Origin, writer: RequestWriter, limit: float) -> bytes:
    return await (await exchanger.begin(origin, writer)).read_whole(limit)


def get() -> RequestWriter:
    return RequestWriter("GET", GET, {})


async def test_a_whole_response_is_returned_and_its_connection_is_reused() -> None:
    async with exchanging(response(b"weather", b"A: b")) as (exchanger, origin, peers):
        for _ in range(2):
            exchange = await exchanger.begin(origin, get())
            assert await exchange.read_whole(math.inf) == b"weather"
            assert (exchange.head.status, exchange.head.values(b"a")) == (200, [b"b"])
        assert [peer.paths for peer in peers] == [["/a", "/a"]]


async def test_a_coded_body_is_decoded() -> None:
    coded = gzip.compress(b"weather" * 100_000)
    async with exchanging(response(coded, b"Content-Encoding: GZIP")) as (exchanger, origin, _):
        assert await exchanged(exchanger, origin, get(), 700_000) == b"weather" * 100_000


@pytest.mark.parametrize(
    "parts",
    [
        (response(b"weather"),),
        (b"HTTP/1.1 200 OK\r\n\r\n", b"weather"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"7\r\nweather\r\n", b"0\r\n\r\n"),
        (response(gzip.compress(b"weather"), b"Content-Encoding: gzip"),),
        (response(b"x" * 70_000, b"Content-Encoding: gzip"),),
        (response(b"weather", b"Content-Encoding: identity"),),
    ],
    ids=["a length", "until the end", "chunks", "decoded", "coded", "identity"],
)
async def test_a_body_beyond_the_limit_is_an_error(parts: tuple[bytes, ...]) -> None:
    async with exchanging(*parts) as (exchanger, origin, _):
        with pytest.raises(BodyTooLargeError, match=r"larger than the 6 bytes .*allow more"):
            await exchanged(exchanger, origin, get(), 6)


@pytest.mark.parametrize("coding", [b"A: b", b"Content-Encoding: gzip"], ids=["plain", "coded"])
async def test_a_body_whose_length_is_beyond_the_limit_is_an_error_before_it_arrives(coding: bytes) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n%b\r\n\r\n" % coding
    async with exchanging(head) as (exchanger, origin, peers):
        with pytest.raises(BodyTooLargeError, match="larger than the 6 bytes"):
            await exchanged(exchanger, origin, get(), 6)
        await peers[0].ended.wait()


async def test_a_length_without_a_body_may_be_beyond_the_limit() -> None:
    async with exchanging(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n") as (exchanger, origin, _):
        exchange = await exchanger.begin(origin, RequestWriter("HEAD", GET.replace(b"GET", b"HEAD"), {}))
        assert (exchange.head.length, await exchange.read_whole(6)) == (100_000, b"")


async def test_a_body_that_is_not_valid_in_its_coding_is_an_error() -> None:
    async with exchanging(response(gzip.compress(b"weather")[:-1], b"Content-Encoding: gzip")) as (
        exchanger,
        origin,
        _,
    ):
        with pytest.raises(httpx.DecodingError):
            await exchanged(exchanger, origin, get(), math.inf)


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
        await exchanged(exchanger, origin, get(), math.inf)
        assert [peer.paths for peer in peers] == [["/a", "/a"]]
