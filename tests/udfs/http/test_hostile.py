"""The client against hostile servers: a typed error, never a wrong body, never a wait beyond the deadline.

`test_response_parser` has all malformed responses. Here some of each kind arrive over a connection.
"""

from __future__ import annotations

import math
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial

import httpx
import pytest
import trio
import trio.testing

from tests.udfs.http.serving import Peer, client_context, never, ok, server_context, serving
from tests.udfs.http.test_response_parser import CHUNKED, OK, REFUSED
from udfs.http import client

Send = Callable[[trio.abc.Stream], Awaitable[None]]

GOOD = OK + b"Content-Length: 2\r\n\r\nok"

Hostile = Callable[[Send | bytes], AbstractAsyncContextManager[tuple[httpx.AsyncClient, list[Peer]]]]


@pytest.fixture(params=["http", "https"])
def tls(request: pytest.FixtureRequest) -> ssl.SSLContext | None:
    """The server's side, with and without TLS."""
    return server_context() if request.param == "https" else None


@pytest.fixture
def hostile(tls: ssl.SSLContext | None) -> Hostile:
    return partial(hostile_server, tls)


@asynccontextmanager
async def hostile_server(
    tls: ssl.SSLContext | None, send: Send | bytes
) -> AsyncIterator[tuple[httpx.AsyncClient, list[Peer]]]:
    """A client, and the connections of its server, which is hostile for "/" and honest for "/ok"."""

    async def respond(peer: Peer) -> None:
        if peer.path == "/ok":
            await ok(peer)
        elif isinstance(send, bytes):
            await peer.stream.send_all(send)
        else:
            await send(peer.stream)

    async with (
        serving(respond, tls) as server,
        client(base_url=server.url, verify=client_context(), timeout=None, keepalive_expiry=math.inf) as http,
    ):
        yield http, server.peers


async def get_fails(http: httpx.AsyncClient, peers: list[Peer], error: type[httpx.RequestError]) -> None:
    """The request fails with this error and its connection is closed; the next request succeeds on another one."""
    with pytest.raises(error) as caught:
        await http.get("/")
    assert caught.value.request.url.path == "/"
    assert (await http.get("/ok")).text == "/ok"
    await peers[0].ended.wait()
    assert [peer.paths for peer in peers] == [["/"], ["/ok"]]


# Malformed responses


@pytest.mark.parametrize(
    "name", ["not HTTP", "RTSP after an interim response", "101", "two lengths", "a chunk longer than its size"]
)
async def test_an_unsafe_response_is_a_protocol_error(name: str, hostile: Hostile) -> None:
    async with hostile(REFUSED[name]) as (http, peers):
        await get_fails(http, peers, httpx.RemoteProtocolError)


# Surplus data


@pytest.mark.parametrize("surplus", [b"x", b"\r\n", b"HTTP/1.1", GOOD, OK + b"Content-Length: 9\r\n\r\npoisoned!"])
@pytest.mark.parametrize("response", [GOOD, CHUNKED + b"2\r\nok\r\n0\r\n\r\n"], ids=["a length", "chunks"])
async def test_surplus_data_never_answers_the_next_request(response: bytes, surplus: bytes, hostile: Hostile) -> None:
    async with hostile(response + surplus) as (http, peers):
        assert (await http.get("/")).text == "ok"
        assert (await http.get("/ok")).text == "/ok"
        assert [peer.paths for peer in peers] == [["/"], ["/ok"]]


@pytest.mark.parametrize("surplus", [b"x", b"\r\n", OK + b"Content-Length: 9\r\n\r\npoisoned!"])
async def test_data_that_arrives_on_an_idle_connection_never_answers_the_next_request(
    surplus: bytes, hostile: Hostile
) -> None:
    async with hostile(GOOD) as (http, peers):
        assert (await http.get("/")).text == "ok"
        await trio.testing.wait_all_tasks_blocked()  # the response may arrive before the server's `send_all` returns
        await peers[0].stream.send_all(surplus)
        assert (await http.get("/ok")).text == "/ok"
        assert [peer.paths for peer in peers] == [["/"], ["/ok"]]


@pytest.mark.parametrize("length", [b"", b"Content-Length: 4\r\n"])
@pytest.mark.parametrize("surplus", [b"", b"body", GOOD])
async def test_a_body_in_the_response_to_head_answers_no_request(
    length: bytes, surplus: bytes, hostile: Hostile
) -> None:
    async with hostile(OK + length + b"\r\n" + surplus) as (http, peers):
        assert (await http.head("/")).content == b""
        assert (await http.get("/ok")).text == "/ok"
        assert len(peers) == (2 if surplus else 1)


# The end of TLS


@pytest.mark.parametrize("is_clean", [True, False])
async def test_a_body_without_a_length_ends_only_with_a_close_notify(is_clean: bool) -> None:
    async def respond(peer: Peer) -> None:
        assert isinstance(peer.stream, trio.SSLStream)
        await peer.stream.send_all(OK + b"\r\nweather")
        if is_clean:
            await peer.stream.unwrap()
        await peer.stream.transport_stream.aclose()

    async with (
        serving(respond, server_context()) as server,
        client(base_url=server.url, verify=client_context()) as http,
    ):
        if is_clean:
            assert (await http.get("/")).text == "weather"
        else:
            with pytest.raises(httpx.RemoteProtocolError, match="before the end of the body"):
                await http.get("/")


async def test_a_server_that_sends_no_handshake_exceeds_the_connect_timeout() -> None:
    async with serving(never) as server, client(verify=client_context(), keepalive_expiry=math.inf) as http:
        while not server.peers:  # a slow machine exceeds it before the handshake, too
            with pytest.raises(
                httpx.ConnectTimeout, match=rf"connect timeout of 0\.01 s \(127\.0\.0\.1:{server.port}\)"
            ):
                await http.get(f"https://127.0.0.1:{server.port}/", timeout=httpx.Timeout(None, connect=0.01))
        await server.peers[0].ended.wait()
