"""The HTTP client, against servers on loopback that speak just enough HTTP."""

from __future__ import annotations

import gzip
import ssl
from typing import Any

import httpx
import pytest
import trio
import trio.testing
import trustme

from tests.udfs.http.serving import Latch, Peer, listening, never, ok, refusing, serving
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


async def test_concurrent_requests_take_a_connection_each_and_leave_it_for_the_next() -> None:
    latches = {"/first": Latch(20), "/second": Latch(20)}

    async def together(peer: Peer) -> None:
        await latches[peer.paths[-1]].wait()
        await peer.answer()

    async with serving(together) as server, client(base_url=server.url) as http:
        await get_all(http, ["/first"] * 20)
        await get_all(http, ["/second"] * 20)
        assert [peer.paths for peer in server.peers] == [["/first", "/second"]] * 20


async def test_the_connection_that_came_back_last_goes_out_first() -> None:
    latch, order = Latch(3), [trio.Event() for _ in range(3)]

    async def in_turn(peer: Peer) -> None:
        await latch.wait()
        await order[int(peer.paths[0][1:])].wait()
        await peer.answer()

    async with serving(in_turn) as server, client(base_url=server.url) as http:
        async with trio.open_nursery() as nursery:

            async def get(number: int) -> None:
                await http.get(f"/{number}")
                order[(number + 1) % 3].set()

            for number in range(3):
                nursery.start_soon(get, number)
            await latch.opened.wait()
            order[1].set()
        await http.get("/next")
        assert sorted(peer.paths for peer in server.peers) == [["/0", "/next"], ["/1"], ["/2"]]


async def test_each_origin_has_its_own_connections() -> None:
    async with serving(ok) as here, serving(ok) as there, client() as http:
        for url in (here.url, there.url, here.url, there.url):
            await http.get(url)
        assert [len(here.peers), len(there.peers)] == [1, 1]


async def test_the_body_of_a_request_arrives() -> None:
    async def echo(peer: Peer) -> None:
        await peer.answer(peer.body)

    async with serving(echo) as server, client(base_url=server.url) as http:
        assert (await http.post("/", content=b"x" * 100_000)).content == b"x" * 100_000


# Connections that are not used again


async def test_a_cancelled_request_closes_its_connection_and_no_other() -> None:
    asked = trio.Event()

    async def some(peer: Peer) -> None:
        if peer.paths[-1] == "/slow":
            asked.set()
            return await never(peer)
        return await ok(peer)

    async with serving(some) as server, client(base_url=server.url) as http:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(http.get, "/slow")
            await asked.wait()
            await http.get("/a")
            nursery.cancel_scope.cancel()
        assert (await http.get("/b")).text == "/b"
        assert [peer.paths for peer in server.peers] == [["/slow"], ["/a", "/b"]]


async def test_a_cancelled_request_hangs_up_on_the_server() -> None:
    asked = trio.Event()

    async def watch(peer: Peer) -> None:
        asked.set()
        await never(peer)

    async with serving(watch) as server, client(base_url=server.url) as http:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(http.get, "/")
            await asked.wait()
            nursery.cancel_scope.cancel()
        await server.peers[0].ended.wait()


async def test_a_request_that_is_cancelled_in_its_tls_handshake_hangs_up_too() -> None:
    """httpcore forgets such a socket, and nobody would close it before the garbage collector."""
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
        await http.get(server.url)  # an idle connection beside it, which is to stay
        failures: list[BaseException] = []

        async def get() -> None:
            try:
                await http.get(f"https://127.0.0.1:{port}")
            except BaseException as failure:
                failures.append(failure)  # keeps the traceback, and with it the socket, alive
                raise

        nursery.start_soon(get)
        await hello.wait()
        nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            await hung_up.wait()
            assert not server.peers[0].ended.is_set()
    assert isinstance(failures[0], trio.Cancelled)


async def test_a_response_that_is_left_unread_closes_its_connection() -> None:
    async def endless(peer: Peer) -> None:
        await peer.stream.send_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\nthe start")

    async with serving(endless) as server, client(base_url=server.url) as http:
        async with http.stream("GET", "/"):
            pass
        await server.peers[0].ended.wait()
        async with http.stream("GET", "/"):
            pass
        assert len(server.peers) == 2


async def test_a_connection_that_the_server_closes_while_idle_is_left_out() -> None:
    async with serving(ok) as server, client(base_url=server.url) as http:
        for path in ("/a", "/b"):
            assert (await http.get(path)).text == path
            await server.peers[-1].stream.aclose()
        assert [peer.paths for peer in server.peers] == [["/a"], ["/b"]]


async def test_connection_close_is_obeyed() -> None:
    async with (
        serving(lambda peer: peer.answer(b"", "connection: close")) as server,
        client(base_url=server.url) as http,
    ):
        await http.get("/")
        await server.peers[0].ended.wait()


async def test_a_reader_who_is_cancelled_hangs_up_even_if_nobody_closes_the_response() -> None:
    async def endless(peer: Peer) -> None:
        await peer.stream.send_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")

    async with serving(endless) as server, client(base_url=server.url) as http:
        response = await http.send(http.build_request("GET", "/"), stream=True)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(response.aread)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        await server.peers[0].ended.wait()
        await response.aclose()


@pytest.mark.parametrize("value", ["close", "Close", "te, close"])
async def test_a_request_that_asks_to_close_the_connection_is_its_last(value: str) -> None:
    async with serving(ok) as server, client(base_url=server.url) as http:
        await http.get("/a", headers={"Connection": value})
        await server.peers[0].ended.wait()
        await http.get("/b", headers={"X-Closed": "close", "Connection": "te"})
        await http.get("/c")
        assert [peer.paths for peer in server.peers] == [["/a"], ["/b", "/c"]]


async def test_an_expired_connection_is_closed_and_not_used_again() -> None:
    async with serving(ok) as server, client(base_url=server.url, keepalive_expiry=0) as http:
        await http.get("/a")
        await http.get("/b")
        await server.peers[0].ended.wait()
        assert [peer.paths for peer in server.peers] == [["/a"], ["/b"]]


async def test_a_connection_that_is_no_longer_usable_is_closed_when_another_origin_is_asked() -> None:
    async with serving(ok) as here, serving(ok) as there, client() as http:
        await http.get(here.url)
        stream = here.peers[0].stream
        assert isinstance(stream, trio.SocketStream)
        await trio.testing.wait_all_tasks_blocked()  # the server's answer is here before its `send_all` returns
        await stream.send_eof()
        await http.get(there.url)
        await here.peers[0].ended.wait()


async def test_closing_the_client_closes_every_idle_connection() -> None:
    latch = Latch(5)

    async def together(peer: Peer) -> None:
        await latch.wait()
        await peer.answer()

    async with serving(together) as server:
        async with client(base_url=server.url) as http:
            await get_all(http, ["/"] * 5)
        for peer in server.peers:
            await peer.ended.wait()
        assert len(server.peers) == 5


async def test_closing_the_transport_fails_what_is_in_flight() -> None:
    asked = trio.Event()

    async def watch(peer: Peer) -> None:
        asked.set()
        await never(peer)

    async with serving(watch) as server:
        transport = StackTransport()
        http = httpx.AsyncClient(transport=transport, base_url=server.url)
        async with trio.open_nursery() as nursery:

            async def get() -> None:
                with pytest.raises(httpx.ReadError):
                    await http.get("/")

            nursery.start_soon(get)
            await asked.wait()
            await transport.aclose()
        with pytest.raises(RuntimeError, match="the transport is closed"):
            await http.get("/")
        await http.aclose()


async def test_a_response_that_is_read_after_the_transport_was_closed_keeps_nothing() -> None:
    async with serving(ok) as server:
        transport = StackTransport()
        async with httpx.AsyncClient(transport=transport, base_url=server.url) as http:
            async with http.stream("GET", "/a") as response:
                await transport.aclose()
                assert await response.aread() == b"/a"
            assert len(transport._pool._idle) == 0


async def test_a_request_that_waited_for_a_connection_finds_the_transport_closed() -> None:
    async with serving(never) as server:
        transport = StackTransport(max_connections=1)
        http = httpx.AsyncClient(transport=transport, base_url=server.url)
        async with trio.open_nursery() as nursery:

            async def get(error: type[Exception]) -> None:
                with pytest.raises(error):
                    await http.get("/")

            nursery.start_soon(get, httpx.ReadError)
            await trio.testing.wait_all_tasks_blocked(0.01)
            nursery.start_soon(get, RuntimeError)
            await trio.testing.wait_all_tasks_blocked(0.01)
            await transport.aclose()
        await http.aclose()
        assert len(server.peers) == 1


# Limits


async def test_at_most_max_idle_connections_are_kept() -> None:
    latch = Latch(3)

    async def together(peer: Peer) -> None:
        await latch.wait()
        await peer.answer()

    async with serving(together) as server, client(base_url=server.url, max_idle=1) as http:
        await get_all(http, ["/"] * 3)
        await http.get("/next")
        assert sorted(len(peer.paths) for peer in server.peers) == [1, 1, 2]
        assert sum(peer.ended.is_set() for peer in server.peers) == 2


async def test_a_request_beyond_max_connections_waits_for_one() -> None:
    async with serving(ok) as server, client(base_url=server.url, max_connections=2) as http:
        await get_all(http, ["/"] * 10)
        assert len(server.peers) == 2
        assert sum(len(peer.paths) for peer in server.peers) == 10


async def test_a_request_waits_for_a_connection_no_longer_than_the_pool_timeout() -> None:
    asked = trio.Event()

    async def watch(peer: Peer) -> None:
        asked.set()
        await never(peer)

    async with serving(watch) as server, client(base_url=server.url, max_connections=1) as http:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(http.get, "/")
            await asked.wait()
            with pytest.raises(httpx.PoolTimeout, match=r"no connection came free in 0\.01 s"):
                await http.get("/", timeout=httpx.Timeout(None, pool=0.01))
            nursery.cancel_scope.cancel()
        with pytest.raises(httpx.ReadTimeout):
            await http.get("/", timeout=httpx.Timeout(None, read=0.01))


async def test_an_idle_connection_makes_room_for_another_origin() -> None:
    async with serving(ok) as here, serving(ok) as there, client(max_connections=1) as http:
        await http.get(here.url)
        await http.get(there.url)
        await here.peers[0].ended.wait()


@pytest.mark.parametrize(
    "limit", [{"max_connections": 0}, {"max_idle": -1}, {"keepalive_expiry": float("nan")}, {"retries": -1}]
)
def test_a_limit_out_of_range_is_refused_by_name(limit: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(limit))} must be at least"):
        StackTransport(**limit)


# Errors are httpx's own


async def test_nobody_listening_is_a_connect_error() -> None:
    with refusing() as port:
        async with client() as http:
            with pytest.raises(httpx.ConnectError, match=r"127\.0\.0\.1") as caught:
                await http.get(f"http://127.0.0.1:{port}/path")
        assert caught.value.request.url.path == "/path"


@pytest.mark.parametrize(
    "sent",
    [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nthe start", b"this is not HTTP\r\n\r\n"],
    ids=["no response", "half a body", "not HTTP"],
)
async def test_a_broken_response_is_a_remote_protocol_error(sent: bytes) -> None:
    async def broken(peer: Peer) -> None:
        if peer.paths[-1] == "/ok":
            return await ok(peer)
        await peer.stream.send_all(sent)
        return await peer.stream.aclose()

    async with serving(broken) as server, client(base_url=server.url) as http:
        with pytest.raises(httpx.RemoteProtocolError):
            await http.get("/")
        assert (await http.get("/ok")).text == "/ok"


async def test_a_timeout_names_the_step_and_its_seconds() -> None:
    async with serving(never) as server, client(base_url=server.url, timeout=httpx.Timeout(None, read=0.01)) as http:
        with pytest.raises(httpx.ReadTimeout, match=r"read timeout of 0\.01 s"):
            await http.get("/")
        await server.peers[0].ended.wait()


@pytest.mark.parametrize("seconds", [0, -1])
async def test_a_read_that_has_no_time_times_out(seconds: float) -> None:
    async with serving(ok) as server, client(base_url=server.url) as http:
        with pytest.raises(httpx.ReadTimeout):
            await http.get("/", timeout=httpx.Timeout(None, read=seconds))
        assert (await http.get("/ok")).text == "/ok"


async def test_nothing_that_the_client_started_outlives_it() -> None:
    async with serving(ok) as server:
        before = trio.lowlevel.current_statistics().tasks_living
        async with client(base_url=server.url, timeout=60.0) as http:
            await http.get("/")
        for peer in server.peers:
            await peer.ended.wait()
        await trio.testing.wait_all_tasks_blocked()
        assert trio.lowlevel.current_statistics().tasks_living == before


async def test_tls_with_a_server_that_does_not_speak_it_is_a_connect_error() -> None:
    async def plain(stream: trio.SocketStream) -> None:
        await stream.send_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        async for _ in stream:
            pass

    async with listening(plain) as port, client() as http:
        with pytest.raises(httpx.ConnectError, match=r"(?i)ssl"):
            await http.get(f"https://127.0.0.1:{port}")


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/", "/no/host", "http:///path"])
async def test_a_url_that_is_not_http_is_refused(url: str) -> None:
    async with client() as http:
        with pytest.raises(httpx.UnsupportedProtocol, match="must start with http"):
            await http.get(url)


# What httpx does above the transport


async def test_a_compressed_body_comes_out_plain() -> None:
    async def compressed(peer: Peer) -> None:
        await peer.answer(gzip.compress(b"weather"), "content-encoding: gzip")

    async with serving(compressed) as server, client(base_url=server.url) as http:
        assert (await http.get("/")).content == b"weather"


async def test_a_chunked_body_comes_out_whole_and_keeps_the_connection() -> None:
    async def chunked(peer: Peer) -> None:
        await peer.stream.send_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        await peer.stream.send_all(b"3\r\nwea\r\n4\r\nther\r\n0\r\n\r\n")

    async with serving(chunked) as server, client(base_url=server.url) as http:
        assert [(await http.get("/")).text for _ in range(3)] == ["weather"] * 3
        assert len(server.peers) == 1


async def test_a_redirect_is_followed_on_the_same_connection() -> None:
    async def moved(peer: Peer) -> None:
        if peer.paths[-1] == "/old":
            return await peer.answer(b"gone", "location: /new", status="302 Found")
        return await ok(peer)

    async with serving(moved) as server, client(base_url=server.url, follow_redirects=True) as http:
        assert (await http.get("/old")).text == "/new"
        assert len(server.peers) == 1


# Options


@pytest.mark.parametrize(
    ("option", "advice"),
    [
        ({"proxy": "http://user:secret@proxy"}, r"httpx\.AsyncClient\(proxy="),
        ({"mounts": {"http://": StackTransport()}}, "one transport"),
        ({"transport": StackTransport()}, "brings its own"),
        ({"limits": httpx.Limits()}, "max_connections="),
        ({"http2": True}, "HTTP/1.1"),
    ],
)
def test_an_option_that_speaks_of_connections_is_refused_with_advice(option: dict[str, Any], advice: str) -> None:
    with pytest.raises(ValueError, match=f"^{next(iter(option))}=.*{advice}") as caught:
        client(**option)
    assert "secret" not in str(caught.value)


def test_an_unknown_option_is_refused_by_httpx() -> None:
    with pytest.raises(TypeError, match="proxyy"):
        client(proxyy="http://proxy")


async def test_the_tls_context_is_made_once_and_only_for_https(monkeypatch: pytest.MonkeyPatch) -> None:
    def counted(**options: object) -> ssl.SSLContext:
        made.append(options)
        return ssl.create_default_context()

    made: list[object] = []
    monkeypatch.setattr(httpx, "create_ssl_context", counted)
    async with serving(ok) as server, client(verify=False) as http:
        await http.get(server.url)
        assert made == []
        with refusing() as port:
            for _ in range(2):
                with pytest.raises(httpx.ConnectError):
                    await http.get(f"https://127.0.0.1:{port}")
        assert made == [{"verify": False, "cert": None, "trust_env": False}]


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def tls(authority: trustme.CA) -> ssl.SSLContext:
    """The server's side, with a certificate for 127.0.0.1."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


async def test_https_connections_are_verified_and_used_again(authority: trustme.CA, tls: ssl.SSLContext) -> None:
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    async with serving(ok, tls) as server, client(base_url=server.url, verify=trusting) as http:
        assert [(await http.get(path)).text for path in ("/a", "/b")] == ["/a", "/b"]
        assert [peer.paths for peer in server.peers] == [["/a", "/b"]]


async def test_a_certificate_that_nobody_vouches_for_is_a_connect_error(tls: ssl.SSLContext) -> None:
    async with serving(ok, tls) as server, client(base_url=server.url) as http:
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            await http.get("/")


async def test_a_read_timeout_holds_through_tls(authority: trustme.CA, tls: ssl.SSLContext) -> None:
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    async with serving(never, tls) as server, client(base_url=server.url, verify=trusting) as http:
        with pytest.raises(httpx.ReadTimeout, match=r"read timeout of 0\.01 s"):
            await http.get("/", timeout=httpx.Timeout(None, read=0.01))
        await server.peers[0].ended.wait()
