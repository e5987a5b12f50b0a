"""The client for httpx2: it sends and receives what httpx2's own client does, with httpx2's errors."""

from __future__ import annotations

import math

import httpx2
import pytest

from tests.udfs.http.comparing import PATHS, same
from tests.udfs.http.proxying import proxying
from tests.udfs.http.serving import Peer, ok, refusing, serving
from udfs.http.httpx2 import HostRefusedError, StackTransport, client


@pytest.mark.parametrize("path", PATHS)
async def test_a_response_is_the_same_as_with_httpx2(path: str) -> None:
    await same(lambda http: http.get(path), httpx2)


async def test_server_sent_events_arrive_one_by_one() -> None:
    async def respond(peer: Peer) -> None:
        await peer.respond(b"data: a\n\ndata: b\n\n", "content-type: text/event-stream")

    async with serving(respond) as server, client(keepalive_expiry=math.inf) as http, http.sse(server.url) as events:
        assert [event.data async for event in events] == ["a", "b"]


# Errors


async def test_a_refused_connection_is_httpx2s_connect_error() -> None:
    with refusing() as port:
        async with client() as http:
            with pytest.raises(httpx2.ConnectError, match=r"127\.0\.0\.1") as caught:
                await http.get(f"http://127.0.0.1:{port}/path")
    assert caught.value.request.url.path == "/path"


async def cut_off(peer: Peer) -> None:
    """Send only the first part of a body."""
    await peer.stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nweather")
    await peer.stream.aclose()


async def test_an_error_in_the_body_is_httpx2s_protocol_error() -> None:
    async with serving(cut_off) as server, client() as http, http.stream("GET", f"{server.url}/a") as response:
        parts = response.aiter_bytes()
        assert await anext(parts) == b"weather"
        with pytest.raises(httpx2.RemoteProtocolError, match="end of the body") as caught:
            await anext(parts)
        assert caught.value.request.url.path == "/a"


async def test_a_body_is_not_read_after_its_response_was_closed() -> None:
    async def respond(peer: Peer) -> None:
        await peer.stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nweather")

    async with serving(respond) as server, client() as http, http.stream("GET", server.url) as response:
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        parts = aiter(response.stream)
        assert await anext(parts) == b"weather"
        await response.aclose()
        with pytest.raises(httpx2.StreamClosed):
            await anext(parts)


async def test_a_request_that_is_not_valid_is_httpx2s_protocol_error() -> None:
    async with client() as http:
        with pytest.raises(httpx2.LocalProtocolError, match="one Host"):
            await http.send(httpx2.Request("GET", "http://127.0.0.1", stream=httpx2.ByteStream(b"")))


# Connections


async def test_an_idempotent_request_on_a_connection_that_died_idle_is_sent_once_more() -> None:
    async def respond(peer: Peer) -> None:
        await (peer.stream.aclose() if len(server.requests) == 2 else ok(peer))

    async with serving(respond) as server, client(base_url=server.url) as http:
        await http.get("/a")
        assert (await http.put("/b", content=b"weather")).text == "/b"
        assert [peer.paths for peer in server.peers] == [["/a", "/b"], ["/b"]]
        assert server.requests[2].body == b"weather"


# Options


async def test_requests_pass_through_a_given_proxy() -> None:
    async with proxying() as proxy, serving(ok) as server, client(proxy=proxy.url) as http:
        assert (await http.get(f"{server.url}/a")).text == "/a"
        assert proxy.targets == [f"{server.url}/a"]


def test_public_names_have_the_address_of_the_public_module() -> None:
    assert {each.__module__ for each in (HostRefusedError, StackTransport, client)} == {"udfs.http.httpx2"}
