"""`transport=` and `mounts=`: each URL goes to the transport to which httpx's own client would send it."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from tests.udfs.http.comparing import outcome
from tests.udfs.http.serving import Peer, Respond, Server, ok, serving
from udfs.http import BodyTooLargeError, StackTransport, client

URLS = [
    "http://example.org/",
    "https://example.org/",
    "https://example.org:8443/",
    "https://a.example.org/",
    "https://notexample.org/",
    "http://[::1]:8000/",
    "http://a.b/",
]
PATTERNS = [
    ["all://"],
    ["http://"],
    ["all://*"],
    ["https://example.org"],
    ["all://*.example.org"],
    ["all://*example.org"],
    ["all://example.org:8443"],
    ["https://example.org:443"],
    ["all://[::1]"],
    ["all://", "https://", "all://*example.org", "all://example.org", "https://example.org", "all://a.b"],
]


def named(name: str) -> httpx.MockTransport:
    return httpx.MockTransport(lambda _: httpx.Response(200, text=name))


@pytest.mark.parametrize("patterns", PATTERNS, ids=" ".join)
async def test_a_url_goes_to_the_same_transport_as_in_httpx(patterns: list[str]) -> None:
    chosen = []
    for make in (httpx.AsyncClient, client):
        mounts = {pattern: named(pattern) for pattern in patterns}
        async with make(transport=named("default"), mounts=mounts) as http:
            chosen.append([(await http.get(url)).text for url in URLS])
    assert chosen[1] == chosen[0]


async def test_a_mount_of_none_is_the_default_transport() -> None:
    async with client(transport=named("default"), mounts={"all://": named("all"), "http://a": None}) as http:
        assert [(await http.get(url)).text for url in ("http://a", "http://b")] == ["default", "all"]


@pytest.mark.parametrize("make", [httpx.AsyncClient, client])
async def test_a_pattern_without_a_scheme_is_refused_as_in_httpx(make: Any) -> None:
    with pytest.raises(ValueError, match="proper URL forms"):
        make(mounts={"http": named("a")})


async def test_other_urls_go_to_the_network() -> None:
    async with serving(ok) as server, client(mounts={"http://mock": named("mock")}) as http:
        assert (await http.get(server.url + "/real")).text == "/real"
        assert (await http.get("http://mock/")).text == "mock"


def answered(request: httpx.Request) -> httpx.Response:
    """Respond as a service would."""
    match request.url.path:
        case "/moved":
            return httpx.Response(302, headers={"Location": "/echo", "Set-Cookie": "a=b"})
        case "/coded":
            return httpx.Response(200, headers={"Content-Encoding": "gzip"}, content=gzip.compress(b"weather"))
        case "/broken":
            raise httpx.ReadError("broken")
        case _:
            return httpx.Response(200, json={"body": request.content.decode(), "cookie": request.headers.get("cookie")})


@pytest.mark.parametrize("path", ["/moved", "/coded", "/broken", "/echo"])
async def test_the_outcome_of_a_mock_transport_is_the_same(path: str) -> None:
    outcomes = []
    for make in (httpx.AsyncClient, partial(client, cookies=True)):
        async with make(
            transport=httpx.MockTransport(answered), base_url="http://mock", timeout=1.0, follow_redirects=True
        ) as http:
            sent = await outcome(http, lambda http: _content(http, path))
            outcomes.append((sent, dict(http.cookies)))
    assert outcomes[1] == outcomes[0]


async def _content(http: httpx.AsyncClient, path: str) -> Any:
    response = await http.post(path, json=[1])
    return response.status_code, response.content, len(response.history)


class Reading(httpx.AsyncBaseTransport):
    """Reads each response before it returns it, as one that retries or logs does."""

    def __init__(self, transport: httpx.AsyncBaseTransport) -> None:
        self._transport = transport

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self._transport.handle_async_request(request)
        await response.aread()
        return response

    async def aclose(self) -> None:
        await self._transport.aclose()


async def gzipped(peer: Peer) -> None:
    await peer.respond(gzip.compress(b"weather"), "content-encoding: gzip")


transports = pytest.mark.parametrize("make", [httpx.AsyncHTTPTransport, StackTransport])


@transports
@pytest.mark.parametrize("respond", [ok, gzipped])
async def test_a_response_that_its_transport_has_read_is_not_read_again(make: Any, respond: Respond) -> None:
    async with (
        serving(respond) as server,
        client(transport=Reading(make()), base_url=server.url, timeout=1.0) as http,
    ):
        body = b"/weather" if respond is ok else b"weather"
        for _ in range(2):
            response = await http.get("/weather")
            assert (response.content, response.is_closed) == (body, True)
        async with http.stream("GET", "/weather") as response:
            assert [part async for part in response.aiter_bytes(4)] == [body[:4], body[4:]]
            with pytest.raises(httpx.StreamConsumed):
                await anext(response.aiter_raw())
    assert len(server.peers) == 1


@pytest.mark.parametrize("make", [httpx.AsyncClient, client])
@pytest.mark.parametrize("name", ["latin-1", None])
async def test_a_function_finds_the_encoding_of_a_body_that_its_transport_has_read(make: Any, name: str | None) -> None:
    bodies = []

    def find(body: bytes) -> str | None:
        bodies.append(body)
        return name

    async def respond(peer: Peer) -> None:
        await peer.respond(b"Z\xfcrich")

    async with (
        serving(respond) as server,
        make(transport=Reading(StackTransport()), base_url=server.url, timeout=1.0, default_encoding=find) as http,
    ):
        for _ in range(2):  # `client` sends its first request in another way
            response = await http.get("/")
            assert response.encoding == (name or "utf-8")
            assert response.text == ("Zürich" if name else "Z\ufffdrich")
    assert bodies == [b"Z\xfcrich"] * 2


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (b"Content-Length: 7\r\nContent-Encoding: gzip\r\n\r\nweather", httpx.DecodingError),
        (b"Content-Length: 9\r\n\r\nweather", httpx.RemoteProtocolError),
        (b"Content-Length: 9\r\nContent-Encoding: gzip\r\n\r\n", httpx.RemoteProtocolError),
    ],
    ids=["not gzip", "cut off", "gzip, cut off"],
)
@pytest.mark.parametrize("make", [httpx.AsyncClient, client])
async def test_a_damaged_body_that_its_transport_reads_is_httpxs_error(
    make: Any, response: bytes, error: type[httpx.RequestError]
) -> None:
    async def damage(peer: Peer) -> None:
        await peer.stream.send_all(b"HTTP/1.1 200 OK\r\n" + response)
        await peer.stream.aclose()

    async with (
        serving(damage) as server,
        make(transport=Reading(StackTransport()), base_url=server.url, timeout=1.0) as http,
    ):
        with pytest.raises(error) as caught:
            await http.get("/weather")
        assert caught.value.request.url.path == "/weather"


class Upper(httpx.AsyncByteStream):
    """A stream around another one: in upper case."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._stream:
            yield part.upper()

    async def aclose(self) -> None:
        await self._stream.aclose()


async def replace_stream(response: httpx.Response) -> None:
    response.stream = Upper(response.stream)


class Replacing(httpx.AsyncBaseTransport):
    """Puts an `Upper` around the stream of each response."""

    def __init__(self) -> None:
        self._transport = StackTransport()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self._transport.handle_async_request(request)
        await replace_stream(response)
        return response

    async def aclose(self) -> None:
        await self._transport.aclose()


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (client, lambda: {"transport": Replacing()}),
        (httpx.AsyncClient, lambda: {"transport": Replacing()}),
        (client, lambda: {"event_hooks": {"response": [replace_stream]}}),
    ],
    ids=["transport", "transport of httpx's client", "hook"],
)
async def test_every_way_to_read_a_response_uses_the_stream_that_was_put_around_it(make: Any, options: Any) -> None:
    async with serving(ok) as server, make(base_url=server.url, timeout=1.0, **options()) as http:
        for _ in range(2):  # `client` sends its first request in another way
            assert (await http.get("/weather")).content == b"/WEATHER"
        async with http.stream("GET", "/weather") as response:
            assert [part async for part in response.aiter_bytes(5)] == [b"/WEAT", b"HER"]
        async with http.stream("GET", "/weather") as response:
            assert [part async for part in response.aiter_raw()] == [b"/WEATHER"]
    assert len(server.peers) == 1


class Ending(httpx.AsyncByteStream):
    """Sends parts, one of them empty, and then raises the error. It counts how often it is closed."""

    def __init__(self, error: Exception | None) -> None:
        self._error = error
        self.closed = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in (b"wea", b"", b"ther"):
            yield part
        if self._error is not None:
            raise self._error

    async def aclose(self) -> None:
        self.closed += 1


@pytest.mark.parametrize("error", [None, ValueError("broken"), httpx.ReadError("broken")])
@pytest.mark.parametrize("make", [httpx.AsyncClient, client])
async def test_the_stream_of_a_transport_is_closed_once_even_after_an_error(make: Any, error: Exception | None) -> None:
    """A transport may free a place at the end of a stream: two of them would be one too many."""
    streams = [Ending(error) for _ in range(4)]
    unused = iter(streams)
    transport = httpx.MockTransport(lambda _: httpx.Response(200, stream=next(unused)))
    async with make(transport=transport, base_url="http://mock", timeout=1.0) as http:
        for _ in range(2):  # `client` sends its first request in another way
            with nullcontext() if error is None else pytest.raises(type(error)):
                assert (await http.get("/")).content == b"weather"
            with nullcontext() if error is None else pytest.raises(type(error)):
                async with http.stream("GET", "/") as response:
                    assert [part async for part in response.aiter_bytes()] == [b"wea", b"ther"]
    assert [stream.closed for stream in streams] == [1, 1, 1, 1]


@transports
async def test_the_limit_applies_to_a_body_that_its_transport_has_read(make: Any) -> None:
    async with (
        serving(ok) as server,
        client(transport=Reading(make()), base_url=server.url, max_body_bytes=6, timeout=1.0) as http,
    ):
        assert (await http.get("/short")).text == "/short"
        with pytest.raises(BodyTooLargeError) as caught:
            await http.get("/weather")
        assert caught.value.request.url.path == "/weather"


@pytest.mark.parametrize("max_body_bytes", [0, -1])
def test_a_limit_of_the_body_below_one_is_refused(max_body_bytes: int) -> None:
    with pytest.raises(ValueError, match=f"max_body_bytes must be at least 1, got {max_body_bytes}"):
        client(max_body_bytes=max_body_bytes)


async def test_a_client_closes_its_transports() -> None:
    class Closable(httpx.MockTransport):
        is_closed = False

        async def aclose(self) -> None:
            self.is_closed = True

    transport, mounted = Closable(answered), Closable(answered)
    async with client(transport=transport, mounts={"http://a": mounted}):
        pass
    assert transport.is_closed
    assert mounted.is_closed


async def test_a_mount_sends_the_requests_to_one_host_to_a_unix_socket(tmp_path: Path) -> None:
    server = Server(ok)
    path = str(tmp_path / "socket")
    with trio.socket.socket(trio.socket.AF_UNIX) as listening:
        await listening.bind(path)
        listening.listen()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.serve_listeners, server.serve, [trio.SocketListener(listening)])
            async with client(mounts={"http://engine": httpx.AsyncHTTPTransport(uds=path)}) as http:
                assert (await http.get("http://engine/a")).text == "/a"
            nursery.cancel_scope.cancel()
