"""The client against servers that mean no good: a typed error, never a wrong body, never a hang past the deadline."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial

import httpx
import pytest
import trio
import trio.testing
import trustme

from tests.udfs.http.serving import Peer, never, ok, serving
from tests.udfs.http.test_response_parser import CHUNKED, OK, REFUSED, RESPONSES
from udfs.http import client

Send = Callable[[trio.abc.Stream], Awaitable[None]]

GOOD = OK + b"Content-Length: 2\r\n\r\nok"


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def contexts(authority: trustme.CA) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The server's side and the client's."""
    serving_side, asking_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority.issue_cert("127.0.0.1").configure_cert(serving_side)
    authority.configure_trust(asking_side)
    return serving_side, asking_side


Hostile = Callable[[Send | bytes], AbstractAsyncContextManager[tuple[httpx.AsyncClient, list[Peer]]]]


@pytest.fixture(params=["http", "https"])
def tls(request: pytest.FixtureRequest, contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> ssl.SSLContext | None:
    """The server's side, with and without TLS."""
    return contexts[0] if request.param == "https" else None


@pytest.fixture
def hostile(tls: ssl.SSLContext | None, contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> Hostile:
    return partial(hostile_server, tls, contexts[1])


@asynccontextmanager
async def hostile_server(
    tls: ssl.SSLContext | None, asking_side: ssl.SSLContext, send: Send | bytes
) -> AsyncIterator[tuple[httpx.AsyncClient, list[Peer]]]:
    """A client, and the connections of its server, which sends that for "/", and is honest on "/ok"."""

    async def answer(peer: Peer) -> None:
        if peer.paths[-1] == "/ok":
            await ok(peer)
        elif isinstance(send, bytes):
            await peer.stream.send_all(send)
        else:
            await send(peer.stream)

    async with serving(answer, tls) as server, client(base_url=server.url, verify=asking_side, timeout=None) as http:
        yield http, server.peers


async def refused(http: httpx.AsyncClient, peers: list[Peer], error: type[httpx.RequestError]) -> None:
    """The request fails with this error, which names it; its connection is closed, and the next one is not harmed."""
    with pytest.raises(error) as caught:
        await http.get("/")
    assert caught.value.request.url.path == "/"
    assert (await http.get("/ok")).text == "/ok"
    await peers[0].ended.wait()
    assert [peer.paths for peer in peers] == [["/"], ["/ok"]]


# What comes is not a response


@pytest.mark.parametrize("response", REFUSED.values(), ids=REFUSED)
async def test_what_is_not_safe_to_take_is_a_protocol_error(response: bytes, hostile: Hostile) -> None:
    async with hostile(response) as (http, peers):
        await refused(http, peers, httpx.RemoteProtocolError)


@pytest.mark.parametrize(
    "part",
    [b"A: b\r\n" * 1_000, b"A" * 10_000, b"\r\n\r\nHTTP/1.1 103 Early Hints" * 1_000],
    ids=["headers", "a name", "interim responses"],
)
async def test_a_head_without_an_end_is_a_protocol_error(part: bytes, hostile: Hostile) -> None:
    async def endless(stream: trio.abc.Stream) -> None:
        await stream.send_all(b"HTTP/1.1 103 Early Hints\r\nX: ")
        while True:
            await stream.send_all(part)

    async with hostile(endless) as (http, peers):
        await refused(http, peers, httpx.RemoteProtocolError)


async def test_trailers_without_an_end_are_a_protocol_error(hostile: Hostile) -> None:
    async def endless(stream: trio.abc.Stream) -> None:
        await stream.send_all(CHUNKED + b"1\r\nx\r\n0\r\n")
        while True:
            await stream.send_all(b"A: b\r\n" * 1_000)

    async with hostile(endless) as (http, peers):
        await refused(http, peers, httpx.RemoteProtocolError)


# What comes is not all


CUT = {name: response for name, response in RESPONSES.items() if len(response) < 120}


@pytest.mark.parametrize("response", CUT.values(), ids=CUT)
async def test_a_response_that_is_cut_at_any_byte_is_a_protocol_error(
    response: bytes, tls: ssl.SSLContext | None, contexts: tuple[ssl.SSLContext, ssl.SSLContext]
) -> None:
    places = iter(range(len(response)))

    async def cut(peer: Peer) -> None:
        await peer.stream.send_all(response[: next(places)])
        await peer.stream.aclose()

    async with serving(cut, tls) as server, client(base_url=server.url, verify=contexts[1]) as http:
        for _ in response:
            with pytest.raises(httpx.RemoteProtocolError):
                await http.get("/")
        assert len(server.peers) == len(response)


async def test_a_connection_that_is_reset_is_a_read_error(hostile: Hostile) -> None:
    async def reset(stream: trio.abc.Stream) -> None:
        await stream.send_all(OK + b"Content-Length: 100\r\n\r\nthe start")
        await trio.testing.wait_all_tasks_blocked()  # the client has read that
        stream = stream.transport_stream if isinstance(stream, trio.SSLStream) else stream
        assert isinstance(stream, trio.SocketStream)
        stream.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        await stream.aclose()

    async with hostile(reset) as (http, peers):
        await refused(http, peers, httpx.ReadError)


# What comes is more


@pytest.mark.parametrize("surplus", [b"x", b"\r\n", b"HTTP/1.1", GOOD, OK + b"Content-Length: 9\r\n\r\npoisoned!"])
@pytest.mark.parametrize("response", [GOOD, CHUNKED + b"2\r\nok\r\n0\r\n\r\n"], ids=["a length", "chunks"])
async def test_what_comes_with_a_response_and_is_more_is_never_the_next_one(
    response: bytes, surplus: bytes, hostile: Hostile
) -> None:
    async with hostile(response + surplus) as (http, peers):
        assert (await http.get("/")).text == "ok"
        assert (await http.get("/ok")).text == "/ok"
        assert [peer.paths for peer in peers] == [["/"], ["/ok"]]


@pytest.mark.parametrize("surplus", [b"x", b"\r\n", OK + b"Content-Length: 9\r\n\r\npoisoned!"])
async def test_what_comes_after_a_response_unasked_is_never_the_next_one(surplus: bytes, hostile: Hostile) -> None:
    async with hostile(GOOD) as (http, peers):
        assert (await http.get("/")).text == "ok"
        await trio.testing.wait_all_tasks_blocked()  # the answer is here before the server's `send_all` returns
        await peers[0].stream.send_all(surplus)
        assert (await http.get("/ok")).text == "/ok"
        assert [peer.paths for peer in peers] == [["/"], ["/ok"]]


async def test_the_answer_to_a_cancelled_request_is_nobody_elses(hostile: Hostile) -> None:
    asked, cancelled = trio.Event(), trio.Event()

    async def late(stream: trio.abc.Stream) -> None:
        asked.set()
        await cancelled.wait()
        await stream.send_all(OK + b"Content-Length: 9\r\n\r\npoisoned!")

    async with hostile(late) as (http, peers):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(http.get, "/")
            await asked.wait()
            nursery.cancel_scope.cancel()
        cancelled.set()
        assert (await http.get("/ok")).text == "/ok"
        assert [peer.paths for peer in peers] == [["/"], ["/ok"]]


async def test_the_rest_of_a_body_that_was_left_is_nobodys_answer(hostile: Hostile) -> None:
    async with hostile(OK + b"Content-Length: 100000\r\n\r\n" + GOOD * 1_000) as (http, peers):
        async with http.stream("GET", "/"):
            pass
        assert (await http.get("/ok")).text == "/ok"
        assert [peer.paths for peer in peers] == [["/"], ["/ok"]]


@pytest.mark.parametrize("more", [b"", b"body", GOOD])
async def test_a_body_in_the_answer_to_head_is_nobodys_answer(more: bytes, hostile: Hostile) -> None:
    async with hostile(OK + b"Content-Length: 4\r\n\r\n" + more) as (http, peers):
        assert (await http.head("/")).content == b""
        assert (await http.get("/ok")).text == "/ok"
        assert len(peers) == (2 if more else 1)


# What comes comes slowly


@pytest.mark.parametrize(
    "start", [b"", OK, OK + b"Content-Length: 1000\r\n\r\n", CHUNKED], ids=["", "head", "body", "chunks"]
)
async def test_a_server_that_says_no_more_meets_the_read_timeout(start: bytes, hostile: Hostile) -> None:
    async def stop(stream: trio.abc.Stream) -> None:
        await stream.send_all(start)
        await trio.sleep_forever()

    async with hostile(stop) as (http, _):
        with pytest.raises(httpx.ReadTimeout, match=r"read timeout of 0\.01 s") as caught:
            await http.get("/", timeout=httpx.Timeout(None, read=0.01))
        assert caught.value.request.url.path == "/"
        assert (await http.get("/ok")).text == "/ok"


@pytest.mark.parametrize("start", [OK + b"A: ", OK + b"Content-Length: 1000\r\n\r\n"], ids=["head", "body"])
async def test_a_slow_drip_meets_the_deadline_of_the_caller(start: bytes, hostile: Hostile) -> None:
    """Each byte is in time for the read timeout, as in httpx; the whole is a matter of the operator's timeout."""
    dripping = trio.Event()

    async def drip(stream: trio.abc.Stream) -> None:
        await stream.send_all(start)
        for number in range(1_000_000):
            await stream.send_all(b"x")
            await trio.testing.wait_all_tasks_blocked()
            if number == 20:
                dripping.set()

    async with hostile(drip) as (http, peers):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(http.get, "/")
            await dripping.wait()
            nursery.cancel_scope.cancel()
        await peers[0].ended.wait()
        assert (await http.get("/ok")).text == "/ok"


# TLS


@pytest.mark.parametrize("is_clean", [True, False])
async def test_a_body_until_the_end_ends_where_the_server_says_so_and_not_where_somebody_cuts(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext], is_clean: bool
) -> None:
    serving_side, asking_side = contexts

    async def answer(peer: Peer) -> None:
        assert isinstance(peer.stream, trio.SSLStream)
        await peer.stream.send_all(OK + b"\r\nweather")
        if is_clean:
            await peer.stream.unwrap()
        await peer.stream.transport_stream.aclose()

    async with serving(answer, serving_side) as server, client(base_url=server.url, verify=asking_side) as http:
        if is_clean:
            assert (await http.get("/")).text == "weather"
        else:
            with pytest.raises(httpx.RemoteProtocolError, match="before the end of the body"):
                await http.get("/")


async def test_a_cut_in_tls_is_a_protocol_error(contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    serving_side, asking_side = contexts

    async def answer(peer: Peer) -> None:
        assert isinstance(peer.stream, trio.SSLStream)
        if peer.paths[-1] == "/half":
            await peer.stream.send_all(OK + b"Content-Length: 100\r\n\r\nthe start")
        await peer.stream.transport_stream.aclose()

    async with serving(answer, serving_side) as server, client(base_url=server.url, verify=asking_side) as http:
        with pytest.raises(httpx.RemoteProtocolError, match="without sending a response"):
            await http.get("/nothing")
        with pytest.raises(httpx.RemoteProtocolError, match="before the end of the body"):
            await http.get("/half")


async def test_a_server_that_is_silent_in_the_handshake_meets_the_connect_timeout(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    async with serving(never) as server, client(verify=contexts[1]) as http:
        with pytest.raises(httpx.ConnectTimeout, match=r"connect timeout of 0\.01 s"):
            await http.get(f"https://127.0.0.1:{server.port}/", timeout=httpx.Timeout(None, connect=0.01))
        await server.peers[0].ended.wait()
