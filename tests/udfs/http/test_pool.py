"""ConnectionPool, over real connections: reuse, limits, and what closes a connection.

A test that waits until a connection is closed lets none expire, so that only the rule under test can close it.
"""

from __future__ import annotations

import math
from typing import Any

import httpx
import pytest
import trio
import trio.testing

from tests.support import PATIENCE
from tests.udfs.http.serving import Latch, Peer, listening, never, ok, serving
from udfs.http import StackTransport, client


async def get_all(http: httpx.AsyncClient, urls: list[str]) -> None:
    async with trio.open_nursery() as nursery:
        for url in urls:
            nursery.start_soon(http.get, url)


# Reuse


async def test_sequential_requests_share_one_connection() -> None:
    async with serving(ok) as server, client(base_url=server.url) as http:
        assert [(await http.get(path)).text for path in ("/a", "/b", "/c")] == ["/a", "/b", "/c"]
        assert [peer.paths for peer in server.peers] == [["/a", "/b", "/c"]]


async def test_concurrent_requests_use_a_connection_each_and_leave_it_idle() -> None:
    latches = {"/first": Latch(20), "/second": Latch(20)}

    async def together(peer: Peer) -> None:
        await latches[peer.path].wait()
        await peer.respond()

    async with serving(together) as server, client(base_url=server.url) as http:
        await get_all(http, ["/first"] * 20)
        await get_all(http, ["/second"] * 20)
        assert [peer.paths for peer in server.peers] == [["/first", "/second"]] * 20


async def test_the_connection_that_became_idle_last_is_reused_first() -> None:
    async with serving(ok) as server, client(base_url=server.url) as http:
        async with http.stream("GET", "/0") as first, http.stream("GET", "/1") as second:
            await second.aread()
            await first.aread()
        await http.get("/next")
        assert [peer.paths for peer in server.peers] == [["/0", "/next"], ["/1"]]


async def test_each_origin_has_its_own_connections() -> None:
    async with serving(ok) as here, serving(ok) as there, client() as http:
        for url in (here.url, there.url, here.url, there.url):
            await http.get(url)
        assert [len(here.peers), len(there.peers)] == [1, 1]


# Connections that are not reused


async def test_a_cancelled_request_closes_its_connection_and_no_other() -> None:
    requested = trio.Event()

    async def some(peer: Peer) -> None:
        if peer.path == "/slow":
            requested.set()
            return await never(peer)
        return await ok(peer)

    async with serving(some) as server, client(base_url=server.url, keepalive_expiry=math.inf) as http:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(http.get, "/slow")
            await requested.wait()
            await http.get("/a")
            nursery.cancel_scope.cancel()
        assert (await http.get("/b")).text == "/b"
        await server.peers[0].ended.wait()
        assert [peer.paths for peer in server.peers] == [["/slow"], ["/a", "/b"]]


async def test_a_request_cancelled_in_its_tls_handshake_closes_its_connection() -> None:
    """httpcore forgets such a socket, so only the garbage collector would close it."""
    hello, hung_up = trio.Event(), trio.Event()

    async def silent(stream: trio.SocketStream) -> None:
        async for _ in stream:
            hello.set()
        hung_up.set()

    async with (
        serving(ok) as server,
        listening(silent) as port,
        client() as http,
        trio.open_nursery() as nursery,
    ):
        await http.get(server.url)  # leaves an idle connection, which must stay open
        failures: list[BaseException] = []

        async def get() -> None:
            try:
                await http.get(f"https://127.0.0.1:{port}")
            except BaseException as failure:
                failures.append(failure)  # its traceback keeps the socket alive
                raise

        nursery.start_soon(get)
        await hello.wait()
        nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            await hung_up.wait()
            assert not server.peers[0].ended.is_set()
    assert isinstance(failures[0], trio.Cancelled)


async def test_an_unread_response_closes_its_connection() -> None:
    async def endless(peer: Peer) -> None:
        await peer.stream.send_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\nthe start")

    async with serving(endless) as server, client(base_url=server.url, keepalive_expiry=math.inf) as http:
        async with http.stream("GET", "/"):
            pass
        await server.peers[0].ended.wait()
        async with http.stream("GET", "/"):
            pass
        assert len(server.peers) == 2


async def test_an_idle_connection_that_the_server_closed_is_not_reused() -> None:
    async with serving(ok) as server, client(base_url=server.url) as http:
        for path in ("/a", "/b"):
            assert (await http.get(path)).text == path
            await server.peers[-1].stream.aclose()
        assert [peer.paths for peer in server.peers] == [["/a"], ["/b"]]


async def test_connection_close_in_a_response_closes_the_connection() -> None:
    async with (
        serving(lambda peer: peer.respond(b"", "connection: close")) as server,
        client(base_url=server.url, keepalive_expiry=math.inf) as http,
    ):
        await http.get("/")
        await server.peers[0].ended.wait()


@pytest.mark.parametrize("value", ["close", "Close", "te, close"])
async def test_connection_close_in_a_request_closes_the_connection(value: str) -> None:
    async with serving(ok) as server, client(base_url=server.url, keepalive_expiry=math.inf) as http:
        await http.get("/a", headers={"Connection": value})
        await server.peers[0].ended.wait()
        await http.get("/b", headers={"X-Closed": "close", "Connection": "te"})
        await http.get("/c")
        assert [peer.paths for peer in server.peers] == [["/a"], ["/b", "/c"]]


async def test_a_cancelled_read_closes_the_connection_although_the_response_is_open() -> None:
    async def endless(peer: Peer) -> None:
        await peer.stream.send_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")

    async with serving(endless) as server, client(base_url=server.url, keepalive_expiry=math.inf) as http:
        response = await http.send(http.build_request("GET", "/"), stream=True)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(response.aread)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        await server.peers[0].ended.wait()
        await response.aclose()


async def test_an_unusable_idle_connection_is_closed_by_a_request_to_another_origin() -> None:
    async with serving(ok) as here, serving(ok) as there, client(keepalive_expiry=math.inf) as http:
        await http.get(here.url)
        stream = here.peers[0].stream
        assert isinstance(stream, trio.SocketStream)
        await trio.testing.wait_all_tasks_blocked()  # the response may arrive before the server's `send_all` returns
        await stream.send_eof()
        await http.get(there.url)
        await here.peers[0].ended.wait()


# Closing


async def test_closing_the_client_closes_every_idle_connection() -> None:
    latch = Latch(5)

    async def together(peer: Peer) -> None:
        await latch.wait()
        await peer.respond()

    async with serving(together) as server:
        async with client(base_url=server.url, keepalive_expiry=math.inf) as http:
            await get_all(http, ["/"] * 5)
        for peer in server.peers:
            await peer.ended.wait()
        assert len(server.peers) == 5


async def test_closing_the_transport_fails_requests_in_flight() -> None:
    requested = trio.Event()

    async def watch(peer: Peer) -> None:
        requested.set()
        await never(peer)

    async with serving(watch) as server:
        transport = StackTransport()
        http = httpx.AsyncClient(transport=transport, base_url=server.url)
        async with trio.open_nursery() as nursery:

            async def get() -> None:
                with pytest.raises(httpx.ReadError):
                    await http.get("/")

            nursery.start_soon(get)
            await requested.wait()
            await transport.aclose()
        with pytest.raises(RuntimeError, match="the transport is closed"):
            await http.get("/")
        await http.aclose()


async def silent(stream: trio.SocketStream) -> None:
    """Send no handshake until the client closes the connection."""
    async for _ in stream:
        pass


@pytest.mark.parametrize("stage", ["name", "TLS handshake"])
async def test_closing_the_transport_fails_requests_that_connect(stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def resolve(*_: object) -> Any:
        await trio.sleep_forever()

    if stage == "name":
        monkeypatch.setattr(trio, "open_tcp_stream", resolve)
    async with listening(silent) as port:
        url = f"https://127.0.0.1:{port}"
        transport = StackTransport(verify=False)
        http = httpx.AsyncClient(transport=transport, timeout=None)

        async def get() -> None:
            with pytest.raises(httpx.ConnectError, match="the transport was closed") as caught:
                await http.get(url)
            assert caught.value.request.url == url

        with trio.fail_after(PATIENCE):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(get)
                await trio.testing.wait_all_tasks_blocked(0.05)
                await transport.aclose()
        await http.aclose()


async def test_a_response_read_after_the_transport_was_closed_leaves_no_connection_open() -> None:
    async with serving(ok) as server:
        transport = StackTransport(keepalive_expiry=math.inf)
        async with httpx.AsyncClient(transport=transport, base_url=server.url) as http:
            async with http.stream("GET", "/a") as response:
                await transport.aclose()
                assert await response.aread() == b"/a"
            await server.peers[0].ended.wait()


# Limits


async def test_of_more_than_max_idle_connections_the_one_that_was_idle_longest_is_closed() -> None:
    async with serving(ok) as here, serving(ok) as there, client(max_idle=1) as http:
        for server in (here, there, there, here):
            await http.get(server.url)
        assert [len(here.peers), len(there.peers)] == [2, 1]


@pytest.mark.parametrize("limit", [{"max_idle": -1}, {"keepalive_expiry": float("nan")}, {"keepalive_expiry": None}])
def test_a_limit_out_of_range_is_refused_by_name(limit: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(limit))} must be at least"):
        StackTransport(**limit)
