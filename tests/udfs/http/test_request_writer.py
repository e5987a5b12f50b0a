"""Bodies on their way out: their frames, their lengths, and servers that do not wait for their end."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import trio
import trustme

from tests.udfs.http.serving import listening, never, serving
from udfs.http import client

MEGABYTES = b"x" * 20_000_000  # far more than the kernel takes of what nobody reads
REFUSAL = b"HTTP/1.1 413 Too Large\r\nContent-Length: 9\r\n\r\ntoo large"


class parts(AsyncIterator[bytes]):  # noqa: N801 - stands for a generator, and needs nobody to close it
    def __init__(self, *sent: bytes) -> None:
        self.left = list(sent)

    async def __anext__(self) -> bytes:
        if not self.left:
            raise StopAsyncIteration
        return self.left.pop(0)


async def sent_by(**options: Any) -> bytes:
    """What arrives of a POST's body, byte by byte."""
    arrived = bytearray()

    async def listen(stream: trio.SocketStream) -> None:
        async for part in stream:
            arrived.extend(part)
            if arrived.endswith((b"!", b"\r\n0\r\n\r\n")):
                await stream.send_all(b"HTTP/1.1 204 Done\r\n\r\n")

    async with listening(listen) as port, client() as http:
        response = await http.send(httpx.Request("POST", f"http://127.0.0.1:{port}/", **options))
        assert response.status_code == 204
    return bytes(arrived).partition(b"\r\n\r\n")[2]


async def test_a_body_of_unknown_length_goes_in_chunks() -> None:
    assert await sent_by(content=parts(b"wea", b"", b"ther" * 4)) == b"3\r\nwea\r\n10\r\ntherthertherther\r\n0\r\n\r\n"


async def test_a_body_of_a_known_length_goes_as_it_is() -> None:
    assert await sent_by(content=parts(b"wea", b"ther!"), headers={"content-length": "8"}) == b"weather!"


async def test_bytes_can_go_as_a_chunk() -> None:
    assert (
        await sent_by(stream=httpx.ByteStream(b"weather"), headers={"host": "h", "transfer-encoding": "chunked"})
        == b"7\r\nweather\r\n0\r\n\r\n"
    )


async def test_a_large_body_arrives_whole() -> None:
    assert await sent_by(content=MEGABYTES + b"!") == MEGABYTES + b"!"


@pytest.mark.parametrize("length", [1, 7, 9, 1_000_000])
@pytest.mark.parametrize("is_made_on_the_way", [False, True])
async def test_a_body_of_another_length_than_it_says_is_refused(length: int, is_made_on_the_way: bool) -> None:
    content: Any = parts(b"wea", b"ther!") if is_made_on_the_way else b"weather!"
    async with serving(never) as server, client(base_url=server.url) as http:
        with pytest.raises(httpx.LocalProtocolError, match=rf"Content-Length is {length:,}") as caught:
            await http.post("/", content=content, headers={"content-length": str(length)})
        assert caught.value.request.method == "POST"
        for peer in server.peers:
            await peer.ended.wait()


async def test_a_body_that_fails_fails_the_request_as_itself() -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"the start"
        raise KeyError("no more")

    async with serving(never) as server, client(base_url=server.url) as http:
        with pytest.raises(KeyError, match="no more"):
            await http.post("/", content=broken())
        await server.peers[0].ended.wait()


# Servers that do not wait


async def refuse(stream: trio.SocketStream) -> None:
    """Answer before the body is there, and read nothing of it."""
    await stream.receive_some(100)
    await stream.send_all(REFUSAL)
    await trio.sleep_forever()


@pytest.mark.parametrize("is_made_on_the_way", [False, True])
async def test_a_server_that_refuses_early_is_heard_and_its_connection_closed(is_made_on_the_way: bool) -> None:
    async with listening(refuse) as port, client(timeout=None) as http:
        for _ in range(2):
            content: Any = parts(*[MEGABYTES] * 3) if is_made_on_the_way else MEGABYTES
            response = await http.post(f"http://127.0.0.1:{port}/", content=content)
            assert (response.status_code, response.text) == (413, "too large")
        assert len(http._transport._pool._idle) == 0


async def test_a_server_that_refuses_early_is_heard_through_tls() -> None:
    authority = trustme.CA()
    serving_side, asking_side = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), ssl.create_default_context()
    authority.issue_cert("127.0.0.1").configure_cert(serving_side)
    authority.configure_trust(asking_side)

    async def refuse_in_tls(stream: trio.SocketStream) -> None:
        tls = trio.SSLStream(stream, serving_side, server_side=True)
        await tls.receive_some(100)
        await tls.send_all(REFUSAL)
        await trio.sleep_forever()

    async with listening(refuse_in_tls) as port, client(timeout=None, verify=asking_side) as http:
        response = await http.post(f"https://127.0.0.1:{port}/", content=MEGABYTES)
        assert (response.status_code, response.text) == (413, "too large")


async def test_a_server_that_answers_early_and_reads_on_gets_the_whole_body() -> None:
    arrived = 0

    async def early(stream: trio.SocketStream) -> None:
        nonlocal arrived
        await stream.send_all(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n")
        async for part in stream:
            arrived += len(part)
            if arrived > len(MEGABYTES):
                break
        await stream.send_all(b"good")
        await trio.sleep_forever()

    async with listening(early) as port, client(timeout=None) as http:
        assert (await http.post(f"http://127.0.0.1:{port}/", content=MEGABYTES)).text == "good"
        assert len(http._transport._pool._idle) == 1


async def test_a_server_that_answers_and_hangs_up_is_heard() -> None:
    async def hang_up(stream: trio.SocketStream) -> None:
        await stream.receive_some(100)
        await stream.send_all(REFUSAL)
        await stream.send_eof()
        await trio.sleep_forever()

    async with listening(hang_up) as port, client(timeout=None) as http:
        assert (await http.post(f"http://127.0.0.1:{port}/", content=MEGABYTES)).text == "too large"


@pytest.mark.parametrize("said", [b"", b"this is not HTTP\r\n\r\n"])
async def test_a_server_that_hangs_up_without_an_answer_is_a_protocol_error(said: bytes) -> None:
    async def hang_up(stream: trio.SocketStream) -> None:
        await stream.send_all(said)
        await stream.send_eof()
        await trio.sleep_forever()

    async with listening(hang_up) as port, client(timeout=None) as http:
        with pytest.raises(httpx.RemoteProtocolError) as caught:
            await http.post(f"http://127.0.0.1:{port}/", content=MEGABYTES)
        assert caught.value.request.url.port == port


@pytest.mark.parametrize("is_made_on_the_way", [False, True])
async def test_a_server_that_does_not_read_meets_the_write_timeout(is_made_on_the_way: bool) -> None:
    async def deaf(stream: trio.SocketStream) -> None:
        await trio.sleep_forever()

    content: Any = parts(MEGABYTES) if is_made_on_the_way else MEGABYTES
    async with listening(deaf) as port, client() as http:
        with pytest.raises(httpx.WriteTimeout, match=r"write timeout of 0\.01 s"):
            await http.post(f"http://127.0.0.1:{port}/", content=content, timeout=httpx.Timeout(None, write=0.01))


async def test_an_upload_that_is_cancelled_hangs_up() -> None:
    asked, hung_up = trio.Event(), trio.Event()

    async def read_late(stream: trio.SocketStream) -> None:
        await stream.receive_some(1)
        asked.set()
        await stop.wait()
        async for _ in stream:
            pass
        hung_up.set()

    stop = trio.Event()
    async with listening(read_late) as port, client(timeout=None) as http:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: http.post(f"http://127.0.0.1:{port}/", content=MEGABYTES))
            await asked.wait()
            nursery.cancel_scope.cancel()
        stop.set()
        await hung_up.wait()
