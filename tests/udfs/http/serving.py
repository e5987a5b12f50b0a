"""HTTP servers on loopback, and certificates for them."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import trio
import trustme

from tests.support import PATIENCE

AUTHORITY = trustme.CA()


def server_context(*names: str) -> ssl.SSLContext:
    """The server's side of TLS, with a certificate for these names; by default for 127.0.0.1."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    AUTHORITY.issue_cert(*(names or ("127.0.0.1",))).configure_cert(context)
    return context


def client_context() -> ssl.SSLContext:
    """The client's side, which trusts those certificates. Made in no time, unlike one with all authorities."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    AUTHORITY.configure_trust(context)
    return context


class Latch:
    """Opens when `count` tasks wait for it."""

    def __init__(self, count: int) -> None:
        self.missing = count
        self.opened = trio.Event()

    async def wait(self) -> None:
        self.missing -= 1
        if self.missing <= 0:
            self.opened.set()
        await self.opened.wait()


@dataclass(frozen=True)
class Request:
    """A request as it arrived. The names of its headers are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Peer:
    """The server's end of one connection."""

    stream: trio.abc.Stream
    requests: list[Request] = field(default_factory=list)
    ended: trio.Event = field(default_factory=trio.Event)

    @property
    def request(self) -> Request:
        """The latest request."""
        return self.requests[-1]

    @property
    def path(self) -> str:
        """The path of the latest request."""
        return self.request.path

    @property
    def paths(self) -> list[str]:
        return [request.path for request in self.requests]

    async def next_request(self) -> bool:
        """Read a request. Returns False if the client has closed the connection."""
        head, _, body = (await self._receive_until(b"\r\n\r\n")).partition(b"\r\n\r\n")
        if not head:
            return False
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        body += await self._receive_exactly(int(headers.get("content-length", 0)) - len(body))
        method, path, _ = first.split(" ")
        self.requests.append(Request(method, path, headers, body))
        return True

    async def respond(self, body: bytes = b"", *headers: str, status: str = "200 OK", missing: int = 0) -> None:
        """Send a response. `missing` bytes of its body do not follow."""
        head = [f"HTTP/1.1 {status}", f"content-length: {len(body) + missing}", *headers, "", ""]
        await self.stream.send_all("\r\n".join(head).encode() + body)

    async def _receive_until(self, end: bytes) -> bytes:
        received = b""
        while end not in received:
            try:
                chunk = await self.stream.receive_some()
            except trio.BrokenResourceError:
                return b""
            if not chunk:
                return b""
            received += bytes(chunk)
        return received

    async def _receive_exactly(self, size: int) -> bytes:
        received = b""
        while len(received) < size and (chunk := await self.stream.receive_some()):
            received += bytes(chunk)
        return received


Respond = Callable[[Peer], Awaitable[None]]


@dataclass
class Server:
    """A server on loopback, with every request and connection that it has accepted."""

    respond: Respond
    tls: ssl.SSLContext | None = None
    port: int = 0
    peers: list[Peer] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    @property
    def paths(self) -> list[str]:
        """The paths of all requests, in order of arrival."""
        return [request.path for request in self.requests]

    async def serve(self, stream: trio.SocketStream) -> None:
        peer = Peer(trio.SSLStream(stream, self.tls, server_side=True) if self.tls else stream)
        self.peers.append(peer)
        try:
            while await peer.next_request():
                self.requests.append(peer.request)
                await self.respond(peer)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        finally:
            peer.ended.set()


@asynccontextmanager
async def listening(
    handler: Callable[[trio.SocketStream], Awaitable[None]], patience: float = PATIENCE
) -> AsyncIterator[int]:
    """The port of a server on loopback whose connections `handler` serves."""
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, handler, 0, host="127.0.0.1"))
        with trio.fail_after(patience):
            yield listeners[0].socket.getsockname()[1]
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def serving(
    respond: Respond, tls: ssl.SSLContext | None = None, patience: float = PATIENCE
) -> AsyncIterator[Server]:
    server = Server(respond, tls)
    async with listening(server.serve, patience) as server.port:
        yield server


@contextmanager
def serving_in_thread(respond: Respond) -> Iterator[Server]:
    """A server in a thread of its own, for tests that are not async."""
    server = Server(respond)
    scope, is_ready = trio.CancelScope(), threading.Event()

    async def main() -> None:
        with scope:
            async with listening(server.serve) as server.port:
                tokens.append(trio.lowlevel.current_trio_token())
                is_ready.set()
                await trio.sleep_forever()

    tokens: list[trio.lowlevel.TrioToken] = []
    thread = threading.Thread(target=trio.run, args=(main,), name="server")
    thread.start()
    assert is_ready.wait(PATIENCE)
    try:
        yield server
    finally:
        tokens[0].run_sync_soon(scope.cancel)
        thread.join()


@contextmanager
def refusing() -> Iterator[int]:
    """A port that is taken, and on which nobody listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


async def ok(peer: Peer) -> None:
    """Respond with the path."""
    await peer.respond(peer.path.encode())


async def never(peer: Peer) -> None:
    """Send nothing until the client closes the connection."""
    async for _ in peer.stream:
        pass


async def reset(stream: trio.abc.Stream) -> None:
    """Close the connection with a TCP reset."""
    stream = stream.transport_stream if isinstance(stream, trio.SSLStream) else stream
    assert isinstance(stream, trio.SocketStream)
    stream.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    await stream.aclose()


def scripted(*responses: Any) -> Respond:
    """Give one response after the other, and the last one again and again.

    Args:
        responses: A status; a tuple of status, headers and, optionally, body; None to close the connection; or an async
            callable that gets the stream, after which the connection is closed.
    """
    remaining = list(responses)

    async def respond(peer: Peer) -> None:
        response = remaining.pop(0) if len(remaining) > 1 else remaining[0]
        match response:
            case None:
                await peer.stream.aclose()
            case int():
                await peer.respond(status=f"{response} Whatever")
            case (status, headers, *body):
                lines = [f"{name}: {value}" for name, value in headers.items()]
                await peer.respond(b"".join(body), *lines, status=f"{status} Whatever")
            case send:
                await send(peer.stream)
                await peer.stream.aclose()

    return respond
