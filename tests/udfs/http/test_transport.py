"""StackTransport: requests that are sent twice or refused, and redirects."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import pytest
import trio
import trio.testing

from tests.udfs.http.serving import Peer, client_context, never, ok, reset, server_context, serving
from udfs.http import client


async def finish(peer: Peer) -> None:
    """Close the connection in order."""
    await peer.stream.aclose()


async def break_off(peer: Peer) -> None:
    """Close the connection with a reset."""
    await reset(peer.stream)


def dying(end: Callable[[Peer], Awaitable[None]], *, lives: int = 1) -> Callable[[Peer], Awaitable[None]]:
    """Responses of a server whose first connections end when their second request has arrived."""
    connections: list[Peer] = []

    async def respond(peer: Peer) -> None:
        if peer not in connections:
            connections.append(peer)
        if len(peer.paths) > 1 and connections.index(peer) < lives:
            await end(peer)
        else:
            await ok(peer)

    return respond


@pytest.fixture(params=["http", "https"])
def tls(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "https")


# Idle connections that die as they are reused


@pytest.mark.parametrize(
    ("method", "end"),
    [
        ("GET", finish),
        ("GET", break_off),
        ("PUT", break_off),
        *[(method, finish) for method in ("HEAD", "OPTIONS", "TRACE", "PUT", "DELETE")],
    ],
)
async def test_an_idempotent_request_on_a_connection_that_died_idle_is_sent_once_more(
    method: str, end: Callable[[Peer], Awaitable[None]], tls: bool
) -> None:
    async with (
        serving(dying(end), server_context() if tls else None) as server,
        client(base_url=server.url, verify=client_context()) as http,
    ):
        await http.get("/a")
        assert (await http.request(method, "/b", content=b"weather" if method == "PUT" else None)).status_code == 200
        assert [peer.paths for peer in server.peers] == [["/a", "/b"], ["/b"]]
        assert server.peers[1].request.body == (b"weather" if method == "PUT" else b"")


async def test_a_body_that_is_sent_while_the_response_is_watched_is_sent_once_more() -> None:
    body = b"weather" * 20_000
    async with serving(dying(break_off)) as server, client(base_url=server.url) as http:
        await http.get("/a")
        assert (await http.put("/b", content=body)).text == "/b"
        assert [peer.paths for peer in server.peers] == [["/a", "/b"], ["/b"]]
        assert server.peers[1].request.body == body


async def fails(http: httpx.AsyncClient, *arguments: Any, **options: Any) -> None:
    with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)) as caught:
        await http.request(*arguments, **options)
    assert caught.value.request.url.path == "/b"


@pytest.mark.parametrize(
    ("method", "end"), [("POST", finish), ("POST", break_off), ("PATCH", finish), ("PURGE", finish)]
)
async def test_a_request_that_is_not_idempotent_is_sent_once(
    method: str, end: Callable[[Peer], Awaitable[None]], tls: bool
) -> None:
    async with (
        serving(dying(end), server_context() if tls else None) as server,
        client(base_url=server.url, verify=client_context()) as http,
    ):
        await http.get("/a")
        await fails(http, method, "/b")
        assert [peer.paths for peer in server.peers] == [["/a", "/b"]]


async def test_a_streamed_body_is_sent_once() -> None:
    async def parts() -> AsyncIterator[bytes]:
        yield b"weather"

    async with serving(dying(finish)) as server, client(base_url=server.url) as http:
        await http.get("/a")
        await fails(http, "PUT", "/b", content=parts(), headers={"content-length": "7"})
        assert [peer.paths for peer in server.peers] == [["/a", "/b"]]


async def test_a_request_on_a_new_connection_is_sent_once() -> None:
    async with serving(finish) as server, client(base_url=server.url) as http:
        await fails(http, "GET", "/b")
        assert [peer.paths for peer in server.peers] == [["/b"]]


async def test_a_request_is_sent_twice_at_most() -> None:
    behaviours = [finish, finish, ok]

    async def respond(peer: Peer) -> None:
        await behaviours.pop()(peer)

    async with serving(respond) as server, client(base_url=server.url) as http:
        await http.get("/a")
        await fails(http, "GET", "/b")
        assert [peer.paths for peer in server.peers] == [["/a", "/b"], ["/b"]]


@pytest.mark.parametrize(
    "start", [b"H", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"]
)
async def test_a_request_whose_response_has_begun_is_sent_once(start: bytes) -> None:
    async def begin(peer: Peer) -> None:
        await peer.stream.send_all(start)
        await peer.stream.aclose()

    async with serving(dying(begin)) as server, client(base_url=server.url) as http:
        await http.get("/a")
        await fails(http, "GET", "/b")
        assert [peer.paths for peer in server.peers] == [["/a", "/b"]]


async def test_a_request_that_times_out_is_sent_once() -> None:
    async with serving(dying(never)) as server, client(base_url=server.url) as http:
        await http.get("/a")
        with pytest.raises(httpx.ReadTimeout):
            await http.get("/b", timeout=httpx.Timeout(None, read=0.01))
        assert [peer.paths for peer in server.peers] == [["/a", "/b"]]


async def test_a_repeated_request_leaves_one_connection() -> None:
    async with serving(dying(finish)) as server, client(base_url=server.url) as http:
        for path in ("/a", "/b", "/c"):
            assert (await http.get(path)).text == path
        assert [peer.paths for peer in server.peers] == [["/a", "/b"], ["/b", "/c"]]


async def test_a_request_of_a_closed_client_is_not_repeated() -> None:
    async with serving(dying(never)) as server, client(base_url=server.url) as http:
        await http.get("/a")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fails, http, "GET", "/b")
            await trio.testing.wait_all_tasks_blocked(0.01)
            await http._transport.aclose()
        assert [peer.paths for peer in server.peers] == [["/a", "/b"]]


# Requests that cannot be sent


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("GET", {"headers": {"X": "a\nb"}}),
        ("GET", {"extensions": {"target": b"/a b"}}),
        ("GE T", {}),
        ("CONNECT", {}),
        ("POST", {"content": b"weather", "headers": {"content-length": "6"}}),
        ("POST", {"content": b"weather" * 100_000, "headers": {"content-length": "7"}}),
        ("POST", {"content": b"", "headers": [("content-length", "0"), ("transfer-encoding", "chunked")]}),
    ],
)
async def test_an_invalid_request_takes_no_connection(method: str, options: dict[str, Any]) -> None:
    async with serving(ok) as server, client(base_url=server.url) as http:
        await http.get("/a")
        with pytest.raises(httpx.LocalProtocolError) as caught:
            await http.request(method, "/bad", **options)
        assert caught.value.request.url.path == "/bad"
        await http.get("/b")
        assert [peer.paths for peer in server.peers] == [["/a", "/b"]]


@pytest.mark.parametrize("port", [0, 65_536])
async def test_an_impossible_port_is_a_connect_error(port: int) -> None:
    async with client() as http:
        with pytest.raises(httpx.ConnectError):
            await http.get(f"http://127.0.0.1:{port}/")


async def test_a_port_beyond_the_last_one_is_not_that_of_another_server() -> None:
    async with serving(ok) as server, client() as http:
        port = server.port + 65_536
        with pytest.raises(httpx.ConnectError, match=f"there is no port {port}: the last one is 65535"):
            await http.get(f"http://127.0.0.1:{port}/")
        assert server.peers == []


# Redirects


@pytest.mark.parametrize("follow_redirects", [False, True])
@pytest.mark.parametrize("location", ["https://xn--a\xe9/", "http://[x]/", "http://h:port/", "http:///" + "a" * 70_000])
async def test_an_invalid_location_is_a_protocol_error(location: str, follow_redirects: bool) -> None:
    async with (
        serving(lambda peer: peer.respond(b"", f"location: {location}", status="302 Found")) as server,
        client(base_url=server.url, follow_redirects=follow_redirects) as http,
    ):
        with pytest.raises(httpx.RemoteProtocolError, match="location") as caught:
            await http.get("/a")
        assert caught.value.request.url.path == "/a"
        assert len(str(caught.value)) < 200


async def test_the_error_of_a_redirect_does_not_show_the_url() -> None:
    async with (
        serving(lambda peer: peer.respond(b"", "location: ftp://h/?token=secret", status="302 Found")) as server,
        client(base_url=server.url, follow_redirects=True) as http,
    ):
        with pytest.raises(httpx.UnsupportedProtocol, match="'ftp'") as caught:
            await http.get("/a")
        assert "secret" not in str(caught.value)
