"""Servers on loopback that speak just enough HTTP, and say what they were asked."""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial

import trio

from tests.support import PATIENCE


class Latch:
    """Opens when `count` tasks have come; they all wait for that."""

    def __init__(self, count: int) -> None:
        self.missing = count
        self.opened = trio.Event()

    async def wait(self) -> None:
        self.missing -= 1
        if self.missing <= 0:
            self.opened.set()
        await self.opened.wait()


@dataclass
class Peer:
    """The server's end of one connection."""

    stream: trio.abc.Stream
    paths: list[str] = field(default_factory=list)
    body: bytes = b""
    ended: trio.Event = field(default_factory=trio.Event)

    async def next_request(self) -> bool:
        """Read a request; False if the client has closed the connection."""
        received = await self._receive_until(b"\r\n\r\n")
        if not received:
            return False
        head, _, rest = received.partition(b"\r\n\r\n")
        self.paths.append(head.split(b" ")[1].decode())
        _, _, size = head.lower().partition(b"content-length: ")
        self.body = rest + await self._receive_exactly(int(size.split()[0]) - len(rest) if size else 0)
        return True

    async def answer(self, body: bytes = b"", *headers: str, status: str = "200 OK") -> None:
        """Send a whole response."""
        head = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", *headers, "", ""]
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


Answer = Callable[[Peer], Awaitable[None]]


@dataclass
class Server:
    """A server on loopback: how it answers, and every connection that it has accepted."""

    answer: Answer
    tls: ssl.SSLContext | None = None
    port: int = 0
    peers: list[Peer] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    async def serve(self, stream: trio.SocketStream) -> None:
        peer = Peer(trio.SSLStream(stream, self.tls, server_side=True) if self.tls else stream)
        self.peers.append(peer)
        try:
            while await peer.next_request():
                await self.answer(peer)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        finally:
            peer.ended.set()


@asynccontextmanager
async def listening(
    handler: Callable[[trio.SocketStream], Awaitable[None]], patience: float = PATIENCE
) -> AsyncIterator[int]:
    """The port of a server on loopback that has `handler` serve each connection."""
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, handler, 0, host="127.0.0.1"))
        with trio.fail_after(patience):
            yield listeners[0].socket.getsockname()[1]
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def serving(
    answer: Answer, tls: ssl.SSLContext | None = None, patience: float = PATIENCE
) -> AsyncIterator[Server]:
    server = Server(answer, tls)
    async with listening(server.serve, patience) as server.port:
        yield server


@contextmanager
def refusing() -> Iterator[int]:
    """A port that is taken and where nobody listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


async def ok(peer: Peer) -> None:
    await peer.answer(peer.paths[-1].encode())


async def never(peer: Peer) -> None:
    """Say nothing until the client hangs up."""
    async for _ in peer.stream:
        pass
