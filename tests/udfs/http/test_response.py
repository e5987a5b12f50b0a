"""Response: bodies are decoded in small steps, and an incomplete body is an error."""

from __future__ import annotations

import gzip
import math
import os
import pickle
import zlib
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

import httpx
import pytest
import trio

from tests.udfs.http.serving import Peer, Server, ok, serving
from udfs.http import BodyTooLargeError, client
from udfs.http._decoding import STEP_BYTES

MEBIBYTE = 1024 * 1024
ZEROS = bytes(64 * MEBIBYTE)
BOMB = gzip.compress(ZEROS)


@asynccontextmanager
async def responding(body: bytes, *headers: str) -> AsyncIterator[tuple[httpx.AsyncClient, Server]]:
    """A client and its server, which sends this for "/" and the path for any other one."""

    async def respond(peer: Peer) -> None:
        if peer.path == "/":
            await peer.respond(body, *headers)
        else:
            await ok(peer)

    async with serving(respond) as server, client(base_url=server.url, keepalive_expiry=math.inf) as http:
        yield http, server


async def read_as_stream(response: httpx.Response) -> bytes:
    return b"".join([part async for part in response.aiter_bytes()])


# Content codings


@pytest.mark.parametrize("chunk_size", [None, 1, 100, 1_000, 10_000])
async def test_a_stream_is_decoded_in_chunks_of_the_requested_size(chunk_size: int | None) -> None:
    data = b"weather" * 1_000
    async with (
        responding(gzip.compress(data), "content-encoding: gzip") as (http, _),
        http.stream("GET", "/") as response,
    ):
        chunks = [chunk async for chunk in response.aiter_bytes(chunk_size)]
    assert b"".join(chunks) == data
    if chunk_size is not None:
        assert {len(chunk) for chunk in chunks[:-1]} <= {chunk_size}
        assert 0 < len(chunks[-1]) <= chunk_size
    assert response.is_closed
    assert response.num_bytes_downloaded == len(gzip.compress(data))


@pytest.mark.parametrize("chunk_size", [0, -1])
async def test_a_chunk_size_below_one_is_refused(chunk_size: int) -> None:
    async with responding(b"weather") as (http, _), http.stream("GET", "/") as response:
        with pytest.raises(ValueError, match=f"chunk_size must be at least 1, got {chunk_size}"):
            await anext(response.aiter_bytes(chunk_size))


@pytest.mark.parametrize(
    ("coding", "encoded"),
    [
        ("gzip", gzip.compress(b"one,", mtime=0) + gzip.compress(b"two", mtime=0)),
        ("deflate", zlib.compress(b"one,two")),
        ("deflate", zlib.compress(b"one,two", wbits=-zlib.MAX_WBITS)),
    ],
)
async def test_every_way_to_read_a_coded_body_gives_all_of_it(coding: str, encoded: bytes) -> None:
    async with responding(encoded, f"content-encoding: {coding}") as (http, server):
        assert (await http.get("/")).content == b"one,two"
        async with http.stream("GET", "/") as response:
            assert b"".join([part async for part in response.aiter_bytes()]) == b"one,two"
        async with http.stream("GET", "/") as response:
            assert "".join([part async for part in response.aiter_text()]) == "one,two"
        async with http.stream("GET", "/") as response:
            assert await response.aread() == b"one,two"
        async with http.stream("GET", "/") as response:
            assert b"".join([part async for part in response.aiter_raw()]) == encoded
        assert pickle.loads(pickle.dumps(await http.get("/"))).content == b"one,two"
    assert len(server.peers) == 1


@pytest.mark.parametrize(
    "body",
    [gzip.compress(b"weather", mtime=0)[:-1], gzip.compress(b"weather", mtime=0) + b"garbage", b"weather"],
    ids=["cut off", "with garbage", "not gzip"],
)
@pytest.mark.parametrize("is_streamed", [False, True])
async def test_a_damaged_body_is_a_decoding_error_with_its_request(body: bytes, is_streamed: bool) -> None:
    async with responding(body, "content-encoding: gzip") as (http, _):
        async with http.stream("GET", "/") as response:
            with pytest.raises(httpx.DecodingError) as caught:
                await (read_as_stream(response) if is_streamed else response.aread())
        assert caught.value.request.url.path == "/"
        assert (await http.get("/ok")).text == "/ok"


@pytest.mark.parametrize("codings", [["gzip, gzip"], ["gzip", "deflate"]])
async def test_stacked_codings_are_refused(codings: list[str]) -> None:
    body = gzip.compress(gzip.compress(b"weather"))
    async with responding(body, *(f"content-encoding: {coding}" for coding in codings)) as (http, _):
        with pytest.raises(httpx.DecodingError, match=r", .* cannot be decoded here"):
            await http.get("/")


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_other_tasks_run_while_a_bomb_is_decoded(is_streamed: bool) -> None:
    """It arrives in one piece or two, so receiving does not explain that many checkpoints."""
    passes = 0

    async def count() -> None:
        nonlocal passes
        while True:
            passes += 1
            await trio.lowlevel.checkpoint()

    async with responding(BOMB, "content-encoding: gzip") as (http, _), trio.open_nursery() as nursery:
        async with http.stream("GET", "/") as response:
            nursery.start_soon(count)
            await (read_as_stream(response) if is_streamed else response.aread())
        nursery.cancel_scope.cancel()
    assert passes > len(ZEROS) // STEP_BYTES // 2


async def test_a_stream_that_is_left_early_closes_the_connection() -> None:
    body = gzip.compress(os.urandom(4 * MEBIBYTE), 1)
    async with responding(body, "content-encoding: gzip") as (http, server):
        async with http.stream("GET", "/") as response, aclosing(response.aiter_bytes()) as parts:
            await anext(parts)
        await server.peers[0].ended.wait()
        with pytest.raises(httpx.StreamConsumed):
            await response.aread()


async def test_a_response_that_was_not_read_can_be_pickled_without_its_body() -> None:
    async with responding(b"weather") as (http, _):
        for _ in range(2):  # `client` sends its first request in another way
            async with http.stream("GET", "/") as response:
                copy = pickle.loads(pickle.dumps(response))
                assert (copy.status_code, copy.headers["content-length"], copy.is_closed) == (200, "7", True)
                with pytest.raises(httpx.StreamClosed):
                    await copy.aread()
                assert await response.aread() == b"weather"


@pytest.mark.parametrize("limit", [None, 7])
async def test_a_body_within_the_limit_is_read(limit: int | None) -> None:
    async with serving(lambda peer: peer.respond(b"weather")) as server, client(max_body_bytes=limit) as http:
        assert (await http.get(server.url)).content == b"weather"


@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize("coding", [None, "gzip"])
async def test_a_body_larger_than_the_limit_is_an_error_and_closes_its_connection(
    coding: str | None, is_streamed: bool
) -> None:
    headers = () if coding is None else (f"content-encoding: {coding}",)
    body = b"weather" if coding is None else gzip.compress(b"weather")
    async with (
        serving(lambda peer: peer.respond(body, *headers, missing=1)) as server,
        client(base_url=server.url, max_body_bytes=6, keepalive_expiry=math.inf) as http,
        http.stream("GET", "/path") as response,
    ):
        with pytest.raises(BodyTooLargeError, match=r"larger than the 6 bytes .*allow more") as caught:
            await (read_as_stream(response) if is_streamed else response.aread())
        assert caught.value.request.url.path == "/path"
        await server.peers[0].ended.wait()


DECLARED = {"plain": (7, ()), "gzip": (2 * 6 + 65_536 + 1, ("content-encoding: gzip",))}


@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize(("length", "headers"), DECLARED.values(), ids=DECLARED.keys())
async def test_a_head_that_declares_a_body_beyond_the_limit_is_an_error_before_its_body(
    length: int, headers: tuple[str, ...], is_streamed: bool
) -> None:
    """The server sends none of the body, so a client that waited for it would hang."""
    async with (
        serving(lambda peer: peer.respond(b"", *headers, missing=length)) as server,
        client(base_url=server.url, max_body_bytes=6, keepalive_expiry=math.inf) as http,
        http.stream("GET", "/path") as response,
    ):
        with pytest.raises(BodyTooLargeError) as caught:
            await (read_as_stream(response) if is_streamed else response.aread())
        assert caught.value.request.url.path == "/path"
        await server.peers[0].ended.wait()


class Unread(httpx.AsyncByteStream):
    """A body of which nothing may be read."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        raise AssertionError("the body was read")
        yield b""


async def test_a_body_that_another_transport_declares_too_large_is_not_read() -> None:
    """Such as httpx's own, which requests through a proxy use."""
    transport = httpx.MockTransport(lambda _: httpx.Response(200, headers={"content-length": "7"}, stream=Unread()))
    async with client(transport=transport, max_body_bytes=6) as http:
        with pytest.raises(BodyTooLargeError):
            await http.get("http://mock/")


async def test_a_response_without_a_body_may_declare_any_length() -> None:
    async with (
        serving(lambda peer: peer.respond(b"", missing=7)) as server,
        client(max_body_bytes=6) as http,
    ):
        response = await http.head(server.url)
        assert (response.content, response.headers["content-length"]) == (b"", "7")


async def test_a_coded_body_that_decodes_to_nothing_is_bounded() -> None:
    """An empty member decodes to no byte, and there can be any number of them."""
    body = gzip.compress(b"") * 10_000
    async with (
        serving(lambda peer: peer.respond(body, "content-encoding: gzip")) as server,
        client(max_body_bytes=1) as http,
    ):
        with pytest.raises(BodyTooLargeError):
            await http.get(server.url)


async def test_the_client_accepts_only_codings_that_it_decodes() -> None:
    async with client() as http, client(headers={"Accept-Encoding": "br"}) as with_brotli:
        assert http.headers["accept-encoding"] == "gzip, deflate"
        assert with_brotli.headers["accept-encoding"] == "br"
