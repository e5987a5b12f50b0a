"""RequestWriter: framing and length of bodies, and servers that respond before the end of one."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import trio

from tests.udfs.http.serving import Peer, Respond, client_context, listening, never, server_context, serving
from udfs.http import client

MEGABYTES = b"x" * 20_000_000  # far more than the kernel takes if the server does not read
REFUSAL = b"HTTP/1.1 413 Too Large\r\nContent-Length: 9\r\n\r\ntoo large"


class parts(AsyncIterator[bytes]):  # noqa: N801 - used like a generator, but need not be closed
    def __init__(self, *sent: bytes) -> None:
        self.left = list(sent)

    async def __anext__(self) -> bytes:
        if not self.left:
            raise StopAsyncIteration
        return self.left.pop(0)


async def sent_by(**options: Any) -> bytes:
    """The bytes of a POST's body as they arrive."""
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


async def test_a_body_of_unknown_length_is_sent_in_chunks() -> None:
    assert await sent_by(content=parts(b"wea", b"", b"ther" * 4)) == b"3\r\nwea\r\n10\r\ntherthertherther\r\n0\r\n\r\n"


async def test_a_body_of_known_length_is_sent_as_it_is() -> None:
    assert await sent_by(content=parts(b"wea", b"ther!"), headers={"content-length": "8"}) == b"weather!"


@pytest.mark.parametrize("headers", [{}, {"content-length": "6000000"}], ids=["chunks", "length"])
@pytest.mark.parametrize("is_secure", [False, True])
async def test_a_body_may_reuse_its_bytearray_for_each_part(is_secure: bool, headers: dict[str, str]) -> None:
    async def refilled() -> AsyncIterator[bytes]:
        part = bytearray()
        for byte in b"XYZ":  # no header has these letters
            part.extend(bytes([byte]) * 2_000_000)  # more than the kernel takes at a time
            yield part
            part.clear()

    arrived = bytearray()

    async def listen(stream: Any) -> None:
        if is_secure:
            stream = trio.SSLStream(stream, server_context(), server_side=True)
        async for data in stream:
            arrived.extend(data)
            if arrived.count(b"Z") == 2_000_000:
                await stream.send_all(b"HTTP/1.1 204 Done\r\n\r\n")

    scheme = "https" if is_secure else "http"
    async with listening(listen) as port, client(verify=client_context()) as http:
        response = await http.post(f"{scheme}://127.0.0.1:{port}/", content=refilled(), headers=headers, timeout=20.0)
        assert response.status_code == 204
    assert [arrived.count(byte) for byte in (b"X", b"Y", b"Z")] == [2_000_000] * 3


async def test_bytes_in_memory_can_be_sent_in_chunks() -> None:
    assert (
        await sent_by(stream=httpx.ByteStream(b"weather"), headers={"host": "h", "transfer-encoding": "chunked"})
        == b"7\r\nweather\r\n0\r\n\r\n"
    )


async def test_a_large_body_arrives_complete() -> None:
    assert await sent_by(content=MEGABYTES + b"!") == MEGABYTES + b"!"


@pytest.mark.parametrize("length", [1, 7, 9, 1_000_000])
@pytest.mark.parametrize("is_streamed", [False, True])
async def test_a_body_whose_length_differs_from_its_content_length_is_refused(length: int, is_streamed: bool) -> None:
    content: Any = parts(b"wea", b"ther!") if is_streamed else b"weather!"
    async with serving(never) as server, client(base_url=server.url, keepalive_expiry=math.inf) as http:
        with pytest.raises(httpx.LocalProtocolError, match=rf"Content-Length is {length:,}") as caught:
            await http.post("/", content=content, headers={"content-length": str(length)})
        assert caught.value.request.method == "POST"
        for peer in server.peers:
            await peer.ended.wait()


async def respond_early(peer: Peer) -> None:
    """Respond as soon as the head has arrived."""
    await peer.respond(b"accepted")


@pytest.mark.parametrize("respond", [never, respond_early])
@pytest.mark.parametrize("headers", [{}, {"content-length": "20"}], ids=["chunks", "length"])
@pytest.mark.parametrize("error", [KeyError, trio.ClosedResourceError, trio.BrokenResourceError])
async def test_an_exception_of_the_body_fails_the_request_unchanged(
    respond: Respond, headers: dict[str, str], error: type[Exception]
) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"the start"
        raise error("no more")

    async with serving(respond) as server, client(base_url=server.url, keepalive_expiry=math.inf) as http:
        with pytest.raises(error, match="no more"):
            await http.post("/", content=broken(), headers=headers)
        await server.peers[0].ended.wait()


# Servers that respond early


async def refuse(stream: trio.SocketStream) -> None:
    """Respond before the body has arrived, and read nothing of it."""
    await stream.receive_some(100)
    await stream.send_all(REFUSAL)
    await trio.sleep_forever()


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_an_early_refusal_is_the_response_and_its_connection_is_not_reused(is_streamed: bool) -> None:
    connections = 0

    async def count(stream: trio.SocketStream) -> None:
        nonlocal connections
        connections += 1
        await refuse(stream)

    async with listening(count) as port, client(timeout=None) as http:
        for _ in range(2):
            content: Any = parts(*[MEGABYTES] * 3) if is_streamed else MEGABYTES
            response = await http.post(f"http://127.0.0.1:{port}/", content=content)
            assert (response.status_code, response.text) == (413, "too large")
    assert connections == 2


async def test_an_early_refusal_is_the_response_in_tls() -> None:
    async def refuse_in_tls(stream: trio.SocketStream) -> None:
        tls = trio.SSLStream(stream, server_context(), server_side=True)
        await tls.receive_some(100)
        await tls.send_all(REFUSAL)
        await trio.sleep_forever()

    async with listening(refuse_in_tls) as port, client(timeout=None, verify=client_context()) as http:
        response = await http.post(f"https://127.0.0.1:{port}/", content=MEGABYTES)
        assert (response.status_code, response.text) == (413, "too large")


async def test_after_an_early_success_the_server_gets_the_complete_body() -> None:
    arrived = 0

    async def early(stream: trio.SocketStream) -> None:
        nonlocal arrived
        await stream.send_all(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n")
        async for part in stream:
            arrived += len(part)
            if arrived > len(MEGABYTES):
                break
        await stream.send_all(b"good")
        await stream.receive_some()
        await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nagain")

    async with listening(early) as port, client(timeout=None) as http:
        assert (await http.post(f"http://127.0.0.1:{port}/", content=MEGABYTES)).text == "good"
        assert (await http.get(f"http://127.0.0.1:{port}/")).text == "again"


async def test_a_refusal_is_the_response_although_the_server_hangs_up() -> None:
    async def hang_up(stream: trio.SocketStream) -> None:
        await stream.receive_some(100)
        await stream.send_all(REFUSAL)
        await stream.send_eof()
        await trio.sleep_forever()

    async with listening(hang_up) as port, client(timeout=None) as http:
        assert (await http.post(f"http://127.0.0.1:{port}/", content=MEGABYTES)).text == "too large"


@pytest.mark.parametrize("sent", [b"", b"this is not HTTP\r\n\r\n"])
async def test_a_hang_up_without_a_response_is_a_protocol_error(sent: bytes) -> None:
    async def hang_up(stream: trio.SocketStream) -> None:
        await stream.send_all(sent)
        await stream.send_eof()
        await trio.sleep_forever()

    async with listening(hang_up) as port, client(timeout=None) as http:
        with pytest.raises(httpx.RemoteProtocolError) as caught:
            await http.post(f"http://127.0.0.1:{port}/", content=MEGABYTES)
        assert caught.value.request.url.port == port


@pytest.mark.parametrize("seconds", [0.01, 0.0, -1.0, math.nan])
@pytest.mark.parametrize("is_streamed", [False, True])
async def test_a_server_that_does_not_read_exceeds_the_write_timeout(is_streamed: bool, seconds: float) -> None:
    async def read_nothing(stream: trio.SocketStream) -> None:
        await trio.sleep_forever()

    content: Any = parts(MEGABYTES) if is_streamed else MEGABYTES
    async with listening(read_nothing) as port, client() as http:
        with pytest.raises(httpx.WriteTimeout, match=rf"write timeout of {seconds} s"):
            await http.post(f"http://127.0.0.1:{port}/", content=content, timeout=httpx.Timeout(None, write=seconds))


async def test_a_cancelled_write_closes_the_connection() -> None:
    requested, hung_up = trio.Event(), trio.Event()

    async def read_late(stream: trio.SocketStream) -> None:
        await stream.receive_some(1)
        requested.set()
        await stop.wait()
        async for _ in stream:
            pass
        hung_up.set()

    stop = trio.Event()
    async with listening(read_late) as port, client(timeout=None) as http:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: http.post(f"http://127.0.0.1:{port}/", content=MEGABYTES))
            await requested.wait()
            nursery.cancel_scope.cancel()
        stop.set()
        await hung_up.wait()
