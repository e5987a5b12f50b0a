"""TlsStream, record by record: which data belongs to a response."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx
import pytest
import trio
import trio.testing

from tests.udfs.http.serving import Peer, client_context, listening, ok, server_context, serving
from udfs.http import client

OK = b"HTTP/1.1 200 OK\r\n"
FORGED = OK + b"Content-Length: 6\r\n\r\nforged"
REQUEST_END = b"\r\n\r\n"

VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


def whole(body: bytes) -> bytes:
    return OK + b"Content-Length: %d\r\n\r\n" % len(body) + body


@pytest.fixture(params=VERSIONS, scope="module")
def context(request: pytest.FixtureRequest) -> ssl.SSLContext:
    """The server's side, in each version of TLS."""
    context = server_context()
    context.minimum_version = context.maximum_version = VERSIONS[request.param]
    return context


@dataclass
class Records:
    """The server's end of a TLS connection. The test sends each record itself."""

    stream: trio.SocketStream
    context: ssl.SSLContext
    incoming: ssl.MemoryBIO = field(default_factory=ssl.MemoryBIO)
    outgoing: ssl.MemoryBIO = field(default_factory=ssl.MemoryBIO)
    requests: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tls = self.context.wrap_bio(self.incoming, self.outgoing, server_side=True)

    async def handshake(self) -> bytes:
        """Complete the handshake. Returns the server's last records, unsent: in TLS 1.3, session tickets."""
        while True:
            try:
                self.tls.do_handshake()
            except ssl.SSLWantReadError:
                await self.stream.send_all(self.outgoing.read())
                await self._receive()
            else:
                return self.outgoing.read()

    async def next_request(self) -> bytes:
        """The target of the next request; `b""` at the end of the connection."""
        received = b""
        while REQUEST_END not in received:
            try:
                part = self.tls.read(65_536)
            except ssl.SSLWantReadError:
                if not await self._receive():
                    return b""
            except ssl.SSLError:  # the client's alert
                return b""
            else:
                if not part:
                    return b""
                received += part
        self.requests.append(received.split(b" ")[1])
        return self.requests[-1]

    def records(self, *parts: bytes) -> bytes:
        """A record for each part."""
        for part in parts:
            self.tls.write(part)
        return self.outgoing.read()

    def close_notify(self) -> bytes:
        """The record that ends the stream, a `close_notify`."""
        try:
            self.tls.unwrap()
        except ssl.SSLWantReadError:
            pass  # the client's has not arrived
        return self.outgoing.read()

    def certificate_request(self) -> bytes:
        """A message of TLS 1.3 itself: the request for a certificate of the client."""
        self.tls._sslobj.verify_client_post_handshake()  # type: ignore[attr-defined]
        self.tls.do_handshake()
        return self.outgoing.read()

    async def send(self, data: bytes) -> None:
        await self.stream.send_all(data)

    async def _receive(self) -> bytes:
        data = bytes(await self.stream.receive_some())
        self.incoming.write(data)
        return data


Serve = Callable[[Records], Awaitable[None]]


@asynccontextmanager
async def peers(
    serve: Serve, context: ssl.SSLContext, client_tls: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[httpx.AsyncClient, list[Records]]]:
    """A client, and the connections of its server. `serve` gets each of them before the handshake."""
    accepted: list[Records] = []

    async def accept(stream: trio.SocketStream) -> None:
        records = Records(stream, context)
        accepted.append(records)
        try:
            await serve(records)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass

    async with (
        listening(accept) as port,
        client(verify=client_tls or client_context(), base_url=f"https://127.0.0.1:{port}") as http,
    ):
        yield http, accepted


def responding(responses: Callable[[Records, bytes], bytes]) -> Serve:
    """Respond to each request with these records, in one segment."""

    async def serve(records: Records) -> None:
        await records.send(await records.handshake())
        while target := await records.next_request():
            await records.send(responses(records, target))

    return serve


# Surplus data


SURPLUS: dict[str, Callable[[Records], bytes]] = {
    "a record": lambda records: records.records(FORGED),
    **{f"{size} bytes": lambda records, size=size: records.records(FORGED)[:size] for size in (1, 4, 5, 6, 40)},
    "no TLS": lambda _: b"this is not TLS, whatever it is",
    "a close_notify": Records.close_notify,
}


@pytest.mark.parametrize("surplus", SURPLUS.values(), ids=SURPLUS)
async def test_what_follows_a_response_prevents_reuse_and_answers_no_request(
    context: ssl.SSLContext, surplus: Callable[[Records], bytes]
) -> None:
    """OpenSSL does not show the start of a record. Its rest would arrive as the response to the next request."""

    def respond(records: Records, target: bytes) -> bytes:
        return records.records(whole(target)) + (surplus(records) if target == b"/a" else b"")

    async with peers(responding(respond), context) as (http, accepted):
        assert [(await http.get(path)).text for path in ("/a", "/b", "/c")] == ["/a", "/b", "/c"]
        assert [records.requests for records in accepted] == [[b"/a"], [b"/b", b"/c"]]


async def test_a_close_notify_on_an_idle_connection_prevents_reuse(context: ssl.SSLContext) -> None:
    async with peers(responding(lambda records, target: records.records(whole(target))), context) as (http, accepted):
        assert (await http.get("/a")).text == "/a"
        await trio.testing.wait_all_tasks_blocked()
        await accepted[0].send(accepted[0].close_notify())
        assert (await http.get("/b")).text == "/b"
        assert [records.requests for records in accepted] == [[b"/a"], [b"/b"]]


# Messages of TLS itself


@pytest.mark.parametrize("size", [1, 4, 5, 6, 100])
async def test_session_tickets_may_arrive_in_pieces_and_with_a_response(size: int) -> None:
    async def serve(records: Records) -> None:
        tickets = await records.handshake()
        assert tickets
        await records.send(tickets[:size])
        await records.next_request()
        await records.send(tickets[size:-1])
        await records.send(tickets[-1:] + records.records(whole(b"/a")))
        await records.next_request()
        await records.send(records.records(whole(b"/b")))

    async with peers(serve, server_context()) as (http, accepted):
        assert [(await http.get(path)).text for path in ("/a", "/b")] == ["/a", "/b"]
        assert [records.requests for records in accepted] == [[b"/a", b"/b"]]


@pytest.mark.parametrize("is_idle", [False, True])
async def test_a_message_of_tls_is_answered_and_does_not_prevent_reuse(is_idle: bool) -> None:
    def respond(records: Records, target: bytes) -> bytes:
        return records.records(whole(target)) + (
            records.certificate_request() if target == b"/a" and not is_idle else b""
        )

    server_tls, client_tls = server_context(), client_context()
    server_tls.verify_mode, client_tls.post_handshake_auth = ssl.CERT_OPTIONAL, True
    async with peers(responding(respond), server_tls, client_tls) as (http, accepted):
        assert (await http.get("/a")).text == "/a"
        if is_idle:
            await trio.testing.wait_all_tasks_blocked()
            await accepted[0].send(accepted[0].certificate_request())
        assert (await http.get("/b")).text == "/b"
        assert [records.requests for records in accepted] == [[b"/a", b"/b"]]


# The end of the stream


async def test_data_and_close_notify_in_one_segment_are_a_complete_body(context: ssl.SSLContext) -> None:
    def respond(records: Records, target: bytes) -> bytes:
        return records.records(OK + b"\r\n", b"wea", b"ther") + records.close_notify()

    async with peers(responding(respond), context) as (http, _):
        assert (await http.get("/")).text == "weather"


@pytest.mark.parametrize("cut", [1, 5, 20])
@pytest.mark.parametrize("head", [OK + b"\r\n", OK + b"Content-Length: 7\r\n\r\n"], ids=["until the end", "a length"])
async def test_a_record_that_is_cut_off_is_a_protocol_error(context: ssl.SSLContext, head: bytes, cut: int) -> None:
    async def serve(records: Records) -> None:
        await records.send(await records.handshake())
        await records.next_request()
        await records.send(records.records(head, b"wea") + records.records(b"ther")[:cut])
        await records.stream.aclose()

    async with peers(serve, context) as (http, _):
        with pytest.raises(httpx.RemoteProtocolError, match="before the end of the body"):
            await http.get("/")


async def test_a_body_of_known_length_is_complete_without_a_close_notify(context: ssl.SSLContext) -> None:
    async def serve(records: Records) -> None:
        await records.send(await records.handshake())
        await records.send(records.records(whole(await records.next_request())))
        await records.stream.aclose()

    async with peers(serve, context) as (http, accepted):
        assert [(await http.get(path)).text for path in ("/a", "/b")] == ["/a", "/b"]
        assert [records.requests for records in accepted] == [[b"/a"], [b"/b"]]


async def test_invalid_tls_within_a_response_is_a_read_error(context: ssl.SSLContext) -> None:
    def respond(records: Records, target: bytes) -> bytes:
        good = records.records(whole(target))
        return good if target == b"/ok" else good[:-1] + bytes([good[-1] ^ 1])

    async with peers(responding(respond), context) as (http, _):
        with pytest.raises(httpx.ReadError, match="SSL"):
            await http.get("/bad")
        assert (await http.get("/ok")).text == "/ok"


async def test_the_client_sends_a_close_notify(context: ssl.SSLContext) -> None:
    ends: list[bytes] = []

    async def accept(stream: trio.SocketStream) -> None:
        peer = Peer(trio.SSLStream(stream, context, server_side=True))
        await peer.next_request()
        await ok(peer)
        ends.append(bytes(await peer.stream.receive_some()))  # raises a BrokenResourceError without a `close_notify`

    async with listening(accept) as port:
        async with client(verify=client_context()) as http:
            await http.get(f"https://127.0.0.1:{port}/")
        await trio.testing.wait_all_tasks_blocked()
        assert ends == [b""]


# The handshake


async def test_a_server_that_hangs_up_in_the_handshake_is_a_connect_error() -> None:
    async def hang_up(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.aclose()

    async with listening(hang_up) as port, client(verify=client_context()) as http:
        with pytest.raises(httpx.ConnectError, match=r"in the TLS handshake: .* write http://"):
            await http.get(f"https://127.0.0.1:{port}/")


async def test_the_server_gets_an_alert_with_the_reason_for_a_refusal() -> None:
    alerts: list[str] = []

    async def accept(stream: trio.SocketStream) -> None:
        with pytest.raises(trio.BrokenResourceError) as caught:
            await trio.SSLStream(stream, server_context(), server_side=True).receive_some()
        alerts.append(str(caught.value.__cause__))

    async with listening(accept) as port, client() as http:
        with pytest.raises(httpx.ConnectError, match="is not valid"):
            await http.get(f"https://127.0.0.1:{port}/")
        await trio.testing.wait_all_tasks_blocked()
    assert ["UNKNOWN_CA" in alert for alert in alerts] == [True]


async def test_http_1_1_is_negotiated_after_another_client_changed_the_shared_context() -> None:
    chosen: list[str | None] = []

    async def serve(records: Records) -> None:
        await records.send(await records.handshake())
        chosen.append(records.tls.selected_alpn_protocol())
        await records.next_request()
        await records.send(records.records(OK + b"Connection: close\r\nContent-Length: 0\r\n\r\n"))

    server_tls, client_tls = server_context(), client_context()
    server_tls.set_alpn_protocols(["h2", "http/1.1"])
    async with peers(serve, server_tls, client_tls) as (http, _):
        for _ in range(2):
            await http.get("/")
            client_tls.set_alpn_protocols(["h2"])
    assert chosen == ["http/1.1", "http/1.1"]


# Server names


async def test_a_connection_is_reused_only_for_its_verified_name() -> None:
    async with (
        serving(ok, server_context("a.example")) as server,
        client(base_url=server.url, verify=client_context()) as http,
    ):
        for path in ("/1", "/2"):
            assert (await http.get(path, extensions={"sni_hostname": "a.example"})).text == path
        for extensions in ({"sni_hostname": "b.example"}, {}):
            with pytest.raises(httpx.ConnectError, match="is not valid"):
                await http.get("/3", extensions=extensions)
        assert [peer.paths for peer in server.peers] == [["/1", "/2"], [], []]


async def test_an_impossible_name_is_a_connect_error() -> None:
    async with serving(ok, server_context()) as server, client(verify=client_context()) as http:
        for name in (".example", "a" * 64 + ".example"):
            with pytest.raises(httpx.ConnectError):
                await http.get(server.url, extensions={"sni_hostname": name})


async def test_a_redirect_to_another_host_keeps_the_sni_hostname_so_that_its_certificate_is_refused() -> None:
    async def moved(peer: Peer) -> None:
        await peer.respond(b"", f"location: https://127.0.0.1:{target.port}/", status="302 Found")

    async with (
        serving(ok, server_context()) as target,
        serving(moved, server_context("a.example")) as server,
        client(verify=client_context(), follow_redirects=True) as http,
    ):
        with pytest.raises(httpx.ConnectError, match=r"a\.example"):
            await http.get(f"https://localhost:{server.port}/", extensions={"sni_hostname": "a.example"})
        assert [len(server.peers), len(target.peers)] == [1, 1]


# Large bodies


async def test_large_bodies_arrive_complete_although_the_server_reads_late(context: ssl.SSLContext) -> None:
    body = bytes(range(256)) * 40_000

    async def late(stream: trio.SocketStream) -> None:
        tls = trio.SSLStream(stream, context, server_side=True)
        received = bytearray(await tls.receive_some())
        await trio.testing.wait_all_tasks_blocked()  # the kernel takes no more data from the client
        start = received.index(REQUEST_END) + len(REQUEST_END)
        while len(received) < start + len(body):
            received += await tls.receive_some(1_000_000)
        await tls.send_all(whole(bytes(received[start:])))

    async with listening(late) as port, client(verify=client_context()) as http:
        assert (await http.post(f"https://127.0.0.1:{port}/", content=body)).content == body
