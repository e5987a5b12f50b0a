"""Bodies that are too large, decompress to too much, or are damaged."""

from __future__ import annotations

import gzip
import os
import tracemalloc
import zlib

import trio

from tests.udfs.http_columns.working import get, responding


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


async def test_the_limit_applies_to_the_decompressed_body_and_is_inclusive() -> None:
    headers = {"content-encoding": "gzip"}
    async with responding((200, headers, gzip.compress(b"x" * 1000))) as server:
        assert (await get(server.url, max_body_bytes=999))[0]["error"]["type"] == "BodyTooLargeError"
        assert (await get(server.url, max_body_bytes=1000))[0]["body"] == "x" * 1000


def bomb(mebibytes: int) -> bytes:
    compressor = zlib.compressobj(1, wbits=zlib.MAX_WBITS | 16)
    return b"".join([compressor.compress(bytes(1024 * 1024)) for _ in range(mebibytes)]) + compressor.flush()


async def test_a_bomb_is_decoded_no_further_than_the_limit() -> None:
    async with responding((404, {"content-encoding": "gzip"}, bomb(64))) as server:
        tracemalloc.start()
        try:
            [result] = await get(server.url, max_body_bytes=1_000_000)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert (result["error"]["type"], result["error"]["attempts"]) == ("BodyTooLargeError", 1)
    assert peak < 32 * 1024 * 1024


async def test_the_body_of_a_followed_redirect_is_not_decoded() -> None:
    redirect = (302, {"location": "/new", "content-encoding": "gzip"}, bomb(4))
    async with responding(redirect, (200, {}, b"new")) as server:
        [result] = await get(server.url, follow_redirects=True, max_body_bytes=1_000)
    assert result["body"] == "new"


async def test_a_body_that_its_coding_makes_larger_is_within_the_limit() -> None:
    noise = os.urandom(1_000)
    async with responding(
        (200, {"content-encoding": "gzip", "content-type": "a/b; charset=latin-1"}, zipped(noise))
    ) as server:
        [result] = await get(server.url, max_body_bytes=1_000)
    assert result["body"] == noise.decode("latin-1")


def zipped(data: bytes) -> bytes:
    return b"".join(gzip.compress(data[at : at + 100]) for at in range(0, len(data), 100))
