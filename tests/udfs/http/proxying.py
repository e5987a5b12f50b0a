"""A proxy on loopback for tests, with the requests that it was sent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import trio

from tests.udfs.http.serving import listening


@dataclass
class Proxy:
    """Forwards requests with an absolute URL, and opens the tunnels that CONNECT asks for."""

    port: int = 0
    lines: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    status: str = "200 Connection established"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def targets(self) -> list[str]:
        """The target of each request."""
        return [line.split(" ")[1] for line in self.lines]

    async def serve(self, stream: trio.SocketStream) -> None:
        try:
            async with stream:
                await self._serve(stream)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass

    async def _serve(self, stream: trio.SocketStream) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            head += await stream.receive_some()
        line, *rest = head.decode().partition("\r\n\r\n")[0].split("\r\n")
        self.lines.append(line)
        self.headers.append({name.lower(): value for name, _, value in (each.partition(": ") for each in rest)})
        method, target, _ = line.split(" ")
        if method == "CONNECT":
            await stream.send_all(f"HTTP/1.1 {self.status}\r\n\r\n".encode())
            host, _, port = target.rpartition(":")
            first = b""
        else:
            url = urlsplit(target)
            host, port = url.hostname or "", str(url.port or 80)
            first = head.replace(target.encode(), (url.path or "/").encode(), 1)
        async with await trio.open_tcp_stream(host, int(port)) as server, trio.open_nursery() as nursery:
            await server.send_all(first)
            nursery.start_soon(_pump, stream, server, nursery.cancel_scope)
            nursery.start_soon(_pump, server, stream, nursery.cancel_scope)


async def _pump(source: trio.SocketStream, sink: trio.SocketStream, scope: trio.CancelScope) -> None:
    async for part in source:
        await sink.send_all(part)
    scope.cancel()


@asynccontextmanager
async def proxying() -> AsyncIterator[Proxy]:
    proxy = Proxy()
    async with listening(proxy.serve) as proxy.port:
        yield proxy
