"""The client for httpx2: it sends and receives what httpx2's own client does, with httpx2's errors."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

import httpx2
import pytest
import trio

from tests.udfs.http.comparing import PATHS, Recorder
from tests.udfs.http.proxying import proxying
from tests.udfs.http.serving import Peer, client_context, listening, never, ok, refusing, server_context, serving
from udfs.http.httpx2 import HostRefusedError, StackTransport, client

Use = Callable[[httpx2.AsyncClient], Awaitable[Any]]


def view(response: httpx2.Response) -> dict[str, Any]:
    return {
        "status": response.status_code,
        "version": response.http_version,
        "reason": response.reason_phrase,
        "headers": response.headers.raw,
        "content": response.content,
        "text": response.text,
        "url": str(response.url),
        "cookies": dict(response.cookies),
        "downloaded": response.num_bytes_downloaded,
        "history": [view(each) for each in response.history],
    }


async def same(use: Use, **options: Any) -> Any:
    """Use both clients; assert that the outcomes and the bytes on the wire are equal, and return the outcome."""
    recorder = Recorder()
    outcomes, wires = [], []
    async with listening(recorder.serve) as port:
        given: dict[str, Any] = {
            "base_url": f"http://127.0.0.1:{port}",
            "trust_env": False,
            "timeout": 5.0,
            "verify": client_context(),
        }
        for make in (httpx2.AsyncClient, partial(client, cookies=True)):
            async with make(**given, **options) as http:
                try:
                    outcomes.append(view(await use(http)))
                except (httpx2.HTTPError, httpx2.StreamError) as error:
                    outcomes.append((type(error), str(error)))
            wires.append(recorder.requests)
            recorder.requests = []
    assert outcomes[1] == outcomes[0]
    assert wires[1] == wires[0]
    return outcomes[1]


@pytest.mark.parametrize("path", PATHS)
async def test_a_response_is_the_same_as_with_httpx2(path: str) -> None:
    await same(lambda http: http.get(path))


async def test_redirects_and_cookies_are_those_of_httpx2() -> None:
    outcome = await same(lambda http: http.get("/cookie-and-on"), follow_redirects=True)
    assert [each["status"] for each in outcome["history"]] == [302]


async def parts() -> AsyncIterator[bytes]:
    yield b"wea"
    yield b"ther"


@pytest.mark.parametrize(
    "options",
    [
        {"content": b"weather"},
        {"json": {"a": [1]}},
        {"data": {"a": "b c"}},
        {"content": parts},
        {"headers": {"A": "b", "a": "c"}, "params": {"q": "ä/?"}, "cookies": {"taste": "sweet"}, "auth": ("u", "p")},
    ],
    ids=["bytes", "json", "form", "chunks", "head"],
)
@pytest.mark.filterwarnings("ignore:Setting per-request cookies:DeprecationWarning")
async def test_a_request_is_the_same_as_with_httpx2(options: dict[str, Any]) -> None:
    def made() -> dict[str, Any]:
        return options | {"content": parts()} if options.get("content") is parts else options

    await same(lambda http: http.post("/json", **made()))


async def test_a_digest_is_authenticated_as_with_httpx2() -> None:
    async with serving(ok) as server, client() as http:
        assert (await http.get(server.url, auth=httpx2.DigestAuth("u", "p"))).text == "/"
    recorder = Recorder()
    async with listening(recorder.serve) as port, client() as http:
        response = await http.get(f"http://127.0.0.1:{port}/digest", auth=httpx2.DigestAuth("u", "p"))
    assert (response.status_code, response.text) == (200, "in")


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


async def test_a_timeout_is_httpx2s_read_timeout() -> None:
    async with serving(never) as server, client() as http:
        with pytest.raises(httpx2.ReadTimeout, match=r"0\.01 s") as caught:
            await http.get(f"{server.url}/a", timeout=httpx2.Timeout(None, read=0.01))
        assert caught.value.request.url.path == "/a"


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


async def test_a_cancelled_request_closes_its_connection() -> None:
    arrived = trio.Event()

    async def respond(peer: Peer) -> None:
        arrived.set()
        await never(peer)

    async with serving(respond) as server, client(keepalive_expiry=math.inf) as http:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(http.get, server.url)
            await arrived.wait()
            nursery.cancel_scope.cancel()
        await server.peers[0].ended.wait()


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


async def test_an_unread_response_closes_its_connection() -> None:
    async with (
        serving(lambda peer: peer.respond(bytes(1_000_000))) as server,
        client(base_url=server.url, keepalive_expiry=math.inf) as http,
    ):
        async with http.stream("GET", "/a"):
            pass
        await server.peers[0].ended.wait()


async def test_tls_is_verified() -> None:
    async with serving(ok, server_context()) as server:
        async with client(verify=client_context()) as http:
            assert (await http.get(server.url)).text == "/"
        async with client() as http:
            with pytest.raises(httpx2.ConnectError, match="certificate"):
                await http.get(server.url)


# Options


@pytest.mark.parametrize(
    ("option", "advice"), [({"limits": httpx2.Limits()}, "max_idle="), ({"http2": True}, "HTTP/1.1")]
)
def test_an_option_for_connections_is_refused_with_advice(option: dict[str, Any], advice: str) -> None:
    with pytest.raises(ValueError, match=f"^{next(iter(option))}=.*{advice}"):
        client(**option)


async def test_by_default_only_connecting_has_a_timeout() -> None:
    async with client() as http:
        assert http.timeout == httpx2.Timeout(None, connect=30.0)


async def test_requests_pass_through_a_given_proxy() -> None:
    async with proxying() as proxy, serving(ok) as server, client(proxy=proxy.url) as http:
        assert (await http.get(f"{server.url}/a")).text == "/a"
        assert proxy.targets == [f"{server.url}/a"]


async def test_requests_pass_through_a_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    async with proxying() as proxy, serving(ok) as server:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        async with client(trust_env=True) as http:
            assert (await http.get(f"{server.url}/a")).text == "/a"
        assert proxy.targets == [f"{server.url}/a"]


def test_public_names_have_the_address_of_the_public_module() -> None:
    assert {each.__module__ for each in (HostRefusedError, StackTransport, client)} == {"udfs.http.httpx2"}
