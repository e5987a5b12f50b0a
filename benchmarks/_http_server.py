"""The HTTP server of the part `http`, in its own process: much faster than any client, and counts the requests.

It has one port without and one with TLS. Paths that start with `/large` have a body of 100 kB, all others 82 bytes.

`/reset?capacity=N` starts a round. The first responses of a round wait until N requests are in flight, which shows
whether a client keeps that many in flight. After that each request gets its response at once. `/count` returns the
number of requests in this round and the peak in flight.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.request import urlopen

import httptools
import trustme

__all__ = ["Server", "reset", "served", "serving"]

BODY = b'{"origin": "JFK", "time_hour": "2013-01-01T10:00:00", "temp": 12.5, "wind": 3.25}'
LARGE_BODY = json.dumps({"temp": 12.5, "padding": "x" * 100_000}).encode()
HEADERS = b"date: Tue, 01 Jan 2013 00:00:00 GMT\r\nserver: benchmark\r\ncontent-type: application/json\r\n"
PATIENCE = 2.0  # seconds for which the first requests of a round wait for each other


def _rendered(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\n%bcontent-length: %d\r\n\r\n%b" % (HEADERS, len(body), body)


RESPONSE, LARGE_RESPONSE = _rendered(BODY), _rendered(LARGE_BODY)


@dataclass(frozen=True, slots=True)
class Server:
    """Where a server is.

    Attributes:
        url: Without TLS.
        tls_url: With TLS.
        authority: The certificate of the authority that signed its certificate, in PEM.
    """

    url: str
    tls_url: str
    authority: str


class _Round:
    """The requests since the last reset."""

    capacity = 1
    requests = peak = 0
    is_open = True

    def __init__(self) -> None:
        self.waiting: list[tuple[asyncio.Transport, bytes]] = []

    def begin(self, capacity: int) -> None:
        self.capacity, self.requests, self.peak, self.is_open = capacity, 0, 0, False
        asyncio.get_running_loop().call_later(PATIENCE, self.release)

    def take(self, transport: asyncio.Transport, response: bytes) -> None:
        self.requests += 1
        if self.is_open:
            transport.write(response)
            return
        self.waiting.append((transport, response))
        self.peak = max(self.peak, len(self.waiting))
        if len(self.waiting) == self.capacity:
            self.release()

    def release(self) -> None:
        if self.waiting:
            self.is_open = True
        for transport, response in self.waiting:
            transport.write(response)
        self.waiting.clear()


class _Connection(asyncio.Protocol):
    """One connection."""

    def __init__(self, current: _Round) -> None:
        self._round = current
        self._parser = httptools.HttpRequestParser(self)
        self._url = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        self._url = url

    def on_message_complete(self) -> None:
        if self._url.startswith(b"/reset"):
            self._round.begin(int(self._url.partition(b"capacity=")[2]))
            self._transport.write(_rendered(b"{}"))
        elif self._url == b"/count":
            count = {"requests": self._round.requests, "peak": self._round.peak}
            self._transport.write(_rendered(json.dumps(count).encode()))
        else:
            self._round.take(self._transport, LARGE_RESPONSE if self._url.startswith(b"/large") else RESPONSE)


async def _serve() -> None:
    current, loop, authority = _Round(), asyncio.get_running_loop(), trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    ports = []
    for tls in (None, context):
        server = await loop.create_server(lambda: _Connection(current), "127.0.0.1", 0, ssl=tls)
        ports.append(server.sockets[0].getsockname()[1])
    print(json.dumps([*ports, authority.cert_pem.bytes().decode()]), flush=True)
    await asyncio.to_thread(sys.stdin.read)  # until the parent process closes the pipe


@contextmanager
def serving() -> Iterator[Server]:
    """A server that runs during the block."""
    command = [sys.executable, "-m", "benchmarks._http_server"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            port, tls_port, authority = json.loads(process.stdout.readline())
            yield Server(f"http://127.0.0.1:{port}", f"https://127.0.0.1:{tls_port}", authority)
        finally:
            process.stdin.close()


def reset(url: str, capacity: int) -> None:
    """Start a round: the first responses wait until `capacity` requests are in flight."""
    with urlopen(f"{url}/reset?capacity={capacity}") as response:
        response.read()


def served(url: str) -> tuple[int, int]:
    """The number of requests in this round, and the peak in flight."""
    with urlopen(f"{url}/count") as response:
        count = json.load(response)
    return count["requests"], count["peak"]


if __name__ == "__main__":
    asyncio.run(_serve())
