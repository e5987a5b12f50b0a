"""Bodies that are too large, decompress to too much, or are damaged."""

from __future__ import annotations

import gzip
import os
import tracemalloc
import zlib

import pytest
import trio

from tests.udfs.http_columns.working import get, request, responding


async def test_a_body_is_read_no_further_than_the_limit() -> None:
    """The server never stops, so only the client can end this."""
    hung_up = trio.Event()

    async def endless(stream: trio.SocketStream) -> None:
        try:
            await stream.send_all(b"HTTP/1.1 200 OK\r\n\r\n")
            while True:
                await stream.send_all(b"x" * 100_000)
        except trio.BrokenResourceError:
            hung_up.set()

    async with responding(endless) as server:
        [result] = await get(server.url, max_body_bytes=1_000_000)
        await hung_up.wait()
    assert (result["status"], result["body"]) == (None, None)
    error = result["error"]
    assert (error["type"], error["attempts"]) == ("BodyTooLargeError", 1)
    assert "1,000,000 bytes (max_body_bytes)" in error["message"]


async def test_a_body_that_its_head_declares_too_large_is_not_waited_for() -> None:
    """The server sends no byte of it."""

    async def declare(stream: trio.SocketStream) -> None:
        await stream.send_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1001\r\n\r\n")
        await stream.receive_some()

    async with responding(declare) as server:
        [result] = await get(server.url, max_body_bytes=1_000)
    assert (result["error"]["type"], result["error"]["attempts"]) == ("BodyTooLargeError", 1)


async def test_the_limit_applies_to_the_decompressed_body_and_is_inclusive() -> None:
    headers = {"content-encoding": "gzip"}
    async with responding((200, headers, gzip.compress(b"x" * 1000))) as server:
        assert (await get(server.url, max_body_bytes=999))[0]["error"]["type"] == "BodyTooLargeError"
        assert (await get(server.url, max_body_bytes=1000))[0]["body"] == "x" * 1000


def bomb(mebibytes: int) -> bytes:
    compressor = zlib.compressobj(1, wbits=zlib.MAX_WBITS | 16)
    return b"".join([compressor.compress(bytes(1024 * 1024)) for _ in range(mebibytes)]) + compressor.flush()


BOMBS = {
    "gzip": lambda: bomb(64),
    "gzip, gzip": lambda: gzip.compress(bomb(64)),
}


@pytest.mark.parametrize(("coding", "error"), [("gzip", "BodyTooLargeError"), ("gzip, gzip", "DecodingError")])
async def test_a_bomb_is_decoded_no_further_than_the_limit(coding: str, error: str) -> None:
    body = BOMBS[coding]()
    async with responding((404, {"content-encoding": coding}, body)) as server:
        tracemalloc.start()
        try:
            [result] = await get(server.url, max_body_bytes=1_000_000)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert (result["error"]["type"], result["error"]["attempts"]) == (error, 1)
    assert peak < 32 * 1024 * 1024


async def test_the_body_of_a_followed_redirect_is_not_decoded() -> None:
    redirect = (302, {"location": "/new", "content-encoding": "gzip"}, bomb(4))
    async with responding(redirect, (200, {}, b"new")) as server:
        [result] = await get(server.url, follow_redirects=True, max_body_bytes=1_000)
    assert result["body"] == "new"


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_an_endless_body_that_decodes_to_nothing_is_an_error(coding: str) -> None:
    """Endless empty gzip members, or empty blocks of deflate data."""
    hung_up = trio.Event()
    nothing = {"gzip": gzip.compress(b""), "deflate": b"\0\0\0\xff\xff"}[coding] * 1_000

    async def endless(stream: trio.SocketStream) -> None:
        try:
            await stream.send_all(b"HTTP/1.1 200 OK\r\ncontent-encoding: %b\r\n\r\n" % coding.encode())
            while True:
                await stream.send_all(nothing)
        except trio.BrokenResourceError:
            hung_up.set()

    async with responding(endless) as server:
        [result] = await get(server.url, max_body_bytes=100_000)
        await hung_up.wait()
    assert (result["error"]["type"], result["error"]["attempts"]) == ("BodyTooLargeError", 1)


async def test_a_body_that_its_coding_makes_larger_is_within_the_limit() -> None:
    noise = os.urandom(1_000)
    async with responding(
        (200, {"content-encoding": "gzip", "content-type": "a/b; charset=latin-1"}, zipped(noise))
    ) as server:
        [result] = await get(server.url, max_body_bytes=1_000)
    assert result["body"] == noise.decode("latin-1")


def zipped(data: bytes) -> bytes:
    return b"".join(gzip.compress(data[at : at + 100]) for at in range(0, len(data), 100))


async def test_a_coded_body_that_is_cut_off_is_an_error() -> None:
    async with responding((200, {"content-encoding": "gzip"}, gzip.compress(os.urandom(500))[:100])) as server:
        [result] = await get(server.url)
    assert (result["status"], result["body"], result["error"]["type"]) == (None, None, "DecodingError")
    assert "cut off" in result["error"]["message"]
    assert len(server.requests) == 1


async def test_a_response_to_head_may_have_a_coding_and_no_body() -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\ncontent-encoding: gzip, gzip\r\n\r\n"

    async def answer_head(stream: trio.SocketStream) -> None:
        await stream.send_all(head)

    async with responding(answer_head) as server:
        result = await request("HEAD", server.url)
    assert (result["status"], result["body"], result["error"]) == (200, "", None)
